#!lua flags=allow-key-locking
-- Ends the lease of one row. Who has lost the lease (too slow, or the row was scheduled anew) writes nothing.
-- KEYS schedule: delay: inv:{row}
-- ARGV row  lease_end  next ('' = there is no such row any more)  lifetime (ms)  json ('' = keep the old copy)
-- returns 'kept', 'removed' or 'lost'
local schedule, delay, copy = KEYS[1], KEYS[2], KEYS[3]
local row, lease_end, due, lifetime, json = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]

if tonumber(redis.call('ZSCORE', schedule, row)) ~= lease_end then return 'lost' end
local every = tonumber(redis.call('ZSCORE', delay, row)) or 0
if due == '' or every <= 0 then
  redis.call('ZREM', schedule, row)
  redis.call('ZREM', delay, row)
  redis.call('DEL', copy)
  return 'removed'
end
if json ~= '' then redis.call('SET', copy, json, 'PX', lifetime) end
redis.call('ZADD', schedule, due, row)
return 'kept'
