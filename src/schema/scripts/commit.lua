#!lua flags=allow-key-locking
-- Ends the leases of rows and stores their new copies.
-- A refresher that has lost a lease (it was too slow, or the row was scheduled again) writes nothing of that row.
-- KEYS schedule: delay: (inv:{row})*
-- ARGV lease_end  (row  next ('' = the row no longer exists)  lifetime (ms)  json ('' = keep the old copy))*
-- returns {kept, removed, lost}, each a number of rows
local schedule, delay = KEYS[1], KEYS[2]
local lease_end = tonumber(ARGV[1])

local rows = {}
for i = 2, #ARGV, 4 do rows[#rows + 1] = ARGV[i] end
local leases = redis.call('ZMSCORE', schedule, unpack(rows))
local delays = redis.call('ZMSCORE', delay, unpack(rows))

local kept, gone, copies, lost = {}, {}, {}, 0
for i, row in ipairs(rows) do
  local due, lifetime, json = unpack(ARGV, i * 4 - 1, i * 4 + 1)
  local copy, every = KEYS[i + 2], tonumber(delays[i]) or 0
  if tonumber(leases[i]) ~= lease_end then
    lost = lost + 1
  elseif due == '' or every <= 0 then
    gone[#gone + 1], copies[#copies + 1] = row, copy
  else
    if json ~= '' then redis.call('SET', copy, json, 'PX', lifetime) end
    kept[#kept + 1] = due
    kept[#kept + 1] = row
  end
end
-- One call for all rows: Upstash bills every call within a script, and a call costs as much time as its work.
if #kept > 0 then redis.call('ZADD', schedule, unpack(kept)) end
if #gone > 0 then
  redis.call('ZREM', schedule, unpack(gone))
  redis.call('ZREM', delay, unpack(gone))
  redis.call('DEL', unpack(copies))
end
return {#kept / 2, #gone, lost}
