#!lua flags=allow-key-locking
-- Counts an order of a flash sale as a sold piece, once per order.
-- It ends the user's hold. It counts an order whose hold is over, too, because the order did happen.
-- KEYS flash:{sale} held:{sale} [order:O]
-- ARGV window order user keep order_ttl      window: of the reservation, as its id names it; keep, order_ttl: seconds
-- returns 1 = counted; 0 = counted before, or the order is of another window than the current one
local sale, held, known = KEYS[1], KEYS[2], KEYS[3]
local window, order, user, keep, order_ttl = unpack(ARGV)

-- An order belongs to the window of its first report. The storefront may repeat an old order while the user holds a
-- piece of the next window. The order must not take that piece.
if known then
  local is_first = redis.call('HSETNX', known, sale, window) == 1
  if is_first then redis.call('EXPIRE', known, order_ttl) end
  if not is_first and redis.call('HGET', known, sale) ~= window then return 0 end
end

local running, upkeep = unpack(redis.call('HMGET', sale, 'window', 'upkeep'), 1, 2)
if running and running ~= window then return 0 end
if redis.call('HSETNX', sale, 'order:' .. order, user) == 0 then return 0 end
redis.call('HINCRBY', sale, 'sold', 1)
-- Ends any hold of this user, because a user gets one piece.
redis.call('HDEL', sale, 'hold:' .. user)
local changes = {'window', window, 'bought:' .. user, order}
-- `upkeep` ends with the number of stored holds: see `flash`.
local rest, stored = string.match(upkeep or '', '^(.* )(%d+)$')
if redis.call('ZREM', held, user) == 1 and stored then
  changes[5], changes[6] = 'upkeep', rest .. math.max(stored - 1, 0)
end
redis.call('HSET', sale, unpack(changes))
-- If the keys were lost, this call has created this key, and nothing else would expire it.
if not running then redis.call('EXPIRE', sale, keep) end
return 1
