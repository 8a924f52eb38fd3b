#!lua flags=allow-key-locking
-- Notes a purge by the clock that pages are stamped with, and forgets those that no stored page can be older than.
-- KEYS purged:
-- ARGV keep (µs), name… (all, item:{item}, url:{hash}, tag:{tag}; with ~ before it: softly)
-- Returns the stamp (µs of Redis' clock)
local purged, keep = KEYS[1], tonumber(ARGV[1])

local time = redis.call('TIME')
local stamp = time[1] .. string.format('%06d', time[2])
for index = 2, #ARGV do
  -- Everything before this moment is purged: no other mark is needed.
  if ARGV[index] == 'all' then redis.call('DEL', purged) end
  redis.call('ZADD', purged, stamp, ARGV[index])
end
redis.call('ZREMRANGEBYSCORE', purged, '-inf', string.format('(%.0f', tonumber(stamp) - keep))
return stamp
