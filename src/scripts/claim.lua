#!lua flags=allow-key-locking
-- Leases rows to one refresher: until the lease ends nobody else gets them.
-- KEYS schedule: delay:
-- ARGV now  lease_end  limit  [row …]     (without rows: the first `limit` that are due)
-- returns the rows granted, flat: row, delay ('0' if it has none), …
local schedule, delay = KEYS[1], KEYS[2]
local now, lease_end, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

local rows = {}
if #ARGV == 3 then
  rows = redis.call('ZRANGEBYSCORE', schedule, '-inf', ARGV[1], 'LIMIT', 0, limit)
else
  -- A row asked for by name need not be due, but must not be leased or backing off: both are at most one lease ahead.
  local named = {unpack(ARGV, 4)}
  for i, due in ipairs(redis.call('ZMSCORE', schedule, unpack(named))) do
    due = tonumber(due)
    if due and (due <= now or due > lease_end) then rows[#rows + 1] = named[i] end
  end
end
if #rows == 0 then return {} end

local leases, granted = {}, {}
for i, every in ipairs(redis.call('ZMSCORE', delay, unpack(rows))) do
  leases[2 * i - 1], leases[2 * i] = ARGV[2], rows[i]
  granted[2 * i - 1], granted[2 * i] = rows[i], every or '0'
end
redis.call('ZADD', schedule, 'XX', unpack(leases))
return granted
