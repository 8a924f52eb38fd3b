#!lua flags=allow-key-locking
-- Marks pages as purged.
-- Each mark is later than every mark before it, even if Redis' clock was set back.
-- It drops marks that are older than every stored page.
-- KEYS purged: purged:latest
-- ARGV keep (µs), name… (all, item:{item}, url:{hash}, tag:{tag}; with ~ before it: a soft purge)
-- returns the stamp (µs of Redis' clock)
local purged, latest, keep = KEYS[1], KEYS[2], tonumber(ARGV[1])

local time, before = redis.call('TIME'), tonumber(redis.call('GET', latest)) or 0
local stamp = string.format('%.0f', math.max(time[1] * 1000000 + time[2], before + 1))
local marks = {}
for index = 2, #ARGV do
  -- This mark voids everything older, so no other mark is needed.
  if ARGV[index] == 'all' then redis.call('DEL', purged) end
  marks[#marks + 1] = stamp
  marks[#marks + 1] = ARGV[index]
end
redis.call('SET', latest, stamp)
redis.call('ZADD', purged, unpack(marks))
redis.call('ZREMRANGEBYSCORE', purged, '-inf', string.format('(%.0f', tonumber(stamp) - keep))
return stamp
