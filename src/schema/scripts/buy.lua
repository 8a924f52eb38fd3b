#!lua flags=allow-key-locking
-- Removes the bought quantities from a cart, once per order.
-- Pieces that were added meanwhile stay.
-- KEYS cart:T order:O once:L
--      once:L: the token that replaced T at a login: see `log_in`
-- ARGV order_ttl (item quantity)*       order_ttl in seconds
-- returns 1; 0 = the order has been taken out of a cart before; a token = a login has moved the cart to this session,
--   and nothing was written
local cart, order, replaced = unpack(KEYS)
local order_ttl = ARGV[1]

if redis.call('HSETNX', order, 'cart', 1) == 0 then return 0 end

local items = {}
for i = 2, #ARGV, 2 do items[#items + 1] = ARGV[i] end
local there = redis.pcall('HMGET', cart, unpack(items))
-- Another program may have stored another type. Such a cart counts as empty.
if there.err then there = {} end
local left, gone = {}, {}
for i, item in ipairs(items) do
  local rest = (tonumber(there[i]) or 0) - ARGV[i * 2 + 1]
  if there[i] and rest > 0 then
    left[#left + 1] = item
    left[#left + 1] = rest
  elseif there[i] then
    gone[#gone + 1] = item
  end
end
if #left + #gone == 0 then
  local known = redis.pcall('GET', replaced)
  local follower = type(known) == 'string' and (known:match(' (.*)') or known) or ''
  if follower ~= '' then
    redis.call('HDEL', order, 'cart')
    return follower
  end
end
redis.call('EXPIRE', order, order_ttl)
if #left > 0 then redis.call('HSET', cart, unpack(left)) end
if #gone > 0 then redis.call('HDEL', cart, unpack(gone)) end
return 1
