#!lua flags=allow-key-locking
-- Counts an order of a flash sale: the hold becomes a sold piece. Once for each order, and also if the hold is over: it did happen.
-- KEYS flash:{sale} held:{sale}
-- ARGV window order user keep        window: whose piece it was, as it stands in the reservation's id; keep: seconds
-- returns 1 = counted; 0 = counted before, or of another window than the one that runs
local sale, held = KEYS[1], KEYS[2]
local window, order, user, keep = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local running = redis.call('HGET', sale, 'window')
if running and running ~= window then return 0 end
if redis.call('HSETNX', sale, 'order:' .. order, user) == 0 then return 0 end
redis.call('HINCRBY', sale, 'sold', 1)
redis.call('HSET', sale, 'window', window, 'bought:' .. user, order)
-- Whichever hold it is: who has bought needs none.
redis.call('HDEL', sale, 'hold:' .. user)
redis.call('ZREM', held, user)
-- Where the keys were lost, this one alone would live for ever.
if not running then redis.call('EXPIRE', sale, keep) end
return 1
