#!lua flags=allow-key-locking
-- Marks pages as purged.
-- Each mark is later than every mark before it, even if Redis' clock was set back.
-- It drops marks that are older than every stored page. If another program has damaged the marks, it purges all pages.
-- KEYS purged: purged:latest
-- ARGV keep (µs), name… (all, item:{item}, url:{hash}, tag:{tag}; with ~ before it: a soft purge)
-- returns the stamp (µs of Redis' clock)
local purged, latest, keep = KEYS[1], KEYS[2], tonumber(ARGV[1])

local time, before = redis.call('TIME'), redis.pcall('GET', latest)
before = type(before) == 'string' and tonumber(string.match(before, '^%d+$')) or 0
local stamp = string.format('%.0f', math.max(time[1] * 1000000 + time[2], before + 1))
local marks = {}
for index = 2, #ARGV do
  -- This mark voids everything older, so no other mark is needed.
  if ARGV[index] == 'all' then redis.call('DEL', purged) end
  marks[#marks + 1] = stamp
  marks[#marks + 1] = ARGV[index]
end
redis.call('SET', latest, stamp)
if type(redis.pcall('ZADD', purged, unpack(marks))) ~= 'number' then
  redis.call('DEL', purged)
  redis.call('ZADD', purged, stamp, 'all', unpack(marks))
end
redis.call('ZREMRANGEBYSCORE', purged, '-inf', string.format('(%.0f', tonumber(stamp) - keep))
return stamp
