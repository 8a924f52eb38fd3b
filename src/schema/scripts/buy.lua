#!lua flags=allow-key-locking
-- Removes the bought quantities from a cart, once per order.
-- Pieces that were added meanwhile stay.
-- KEYS cart:T order:O
-- ARGV order_ttl (item quantity)*       order_ttl in seconds
-- returns 1; 0 = the order has been taken out of a cart before
local cart, order = KEYS[1], KEYS[2]
local order_ttl = ARGV[1]

if redis.call('HSETNX', order, 'cart', 1) == 0 then return 0 end
redis.call('EXPIRE', order, order_ttl)

local items = {}
for i = 2, #ARGV, 2 do items[#items + 1] = ARGV[i] end
local there = redis.pcall('HMGET', cart, unpack(items))
-- Another program may have stored another type. Such a cart counts as empty.
if there.err then return 1 end
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
if #left > 0 then redis.call('HSET', cart, unpack(left)) end
if #gone > 0 then redis.call('HDEL', cart, unpack(gone)) end
return 1
