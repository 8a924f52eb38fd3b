#!lua flags=allow-key-locking
-- Counts a reported view of an item that is in the ranking, once per idempotency key.
-- KEYS viewed: once:H
-- ARGV item once_ttl (seconds)
-- returns the item's score; nil = the item is not in the ranking, or this view was counted before
local ranking, once = KEYS[1], KEYS[2]
local item, once_ttl = ARGV[1], ARGV[2]

if not redis.call('SET', once, item, 'NX', 'EX', once_ttl) then return false end
return redis.call('ZADD', ranking, 'XX', 'INCR', -1, item)
