#!lua flags=allow-key-locking
-- Marks pages as purged, with the clock that also stamps the pages.
-- It drops marks that are older than every stored page.
-- KEYS purged:
-- ARGV keep (µs), name… (all, item:{item}, url:{hash}, tag:{tag}; with ~ before it: a soft purge)
-- returns the stamp (µs of Redis' clock)
local purged, keep = KEYS[1], tonumber(ARGV[1])

local time = redis.call('TIME')
local stamp = time[1] .. string.format('%06d', time[2])
for index = 2, #ARGV do
  -- This mark voids everything older, so no other mark is needed.
  if ARGV[index] == 'all' then redis.call('DEL', purged) end
  redis.call('ZADD', purged, stamp, ARGV[index])
end
redis.call('ZREMRANGEBYSCORE', purged, '-inf', string.format('(%.0f', tonumber(stamp) - keep))
return stamp
