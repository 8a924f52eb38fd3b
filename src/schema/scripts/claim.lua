#!lua flags=allow-key-locking
-- Leases rows to one refresher, so that no other refresher gets them until the lease ends.
-- KEYS schedule: delay:
-- ARGV now  lease_end  limit  free_by  [row …]     (without rows: the first `limit` rows that are due)
--      free_by: a named row that is due by then has no lease; it is granted because its copy is missing.
--               '' = only rows that are due, or due later than a lease can end
-- returns the granted rows
local schedule, delay = KEYS[1], KEYS[2]
local now, lease_end, limit, free_by = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]) or 0

local rows = {}
if #ARGV == 4 then
  rows = redis.call('ZRANGEBYSCORE', schedule, '-inf', ARGV[1], 'LIMIT', 0, limit)
else
  -- A named row need not be due, but it must not be leased or in backoff. Both are at most one lease ahead. Leases that
  -- begin in the same millisecond end within one millisecond.
  local named = {unpack(ARGV, 5)}
  local delays = free_by > 0 and redis.call('ZMSCORE', delay, unpack(named)) or {}
  for i, due in ipairs(redis.call('ZMSCORE', schedule, unpack(named))) do
    due = tonumber(due)
    -- The last refresh was at least one second ago, failed or not. So readers cannot overload a failing source.
    local missing = due and due <= free_by and due <= now + (tonumber(delays[i]) or 0) - 1
    if due and (due <= now or due > lease_end + 0.001 or missing) then rows[#rows + 1] = named[i] end
  end
end
if #rows == 0 then return rows end

local leases = {}
for i, row in ipairs(rows) do leases[2 * i - 1], leases[2 * i] = ARGV[2], row end
redis.call('ZADD', schedule, 'XX', unpack(leases))
return rows
