#!lua flags=allow-key-locking
-- Ends the leases of rows, stores their new copies, and sets when the rows are due again.
-- A refresher that has lost a lease (it was too slow, or the row was scheduled again) writes nothing of that row.
-- KEYS schedule: delay: (inv:{row})*
-- ARGV now  keep_by  holder  elapsed  (row  lease_end  period  json)*
--      keep_by: a row that is due again by then, with a period of at most a lease, stays with this refresher: its next
--               lease begins when the row is due. 0 = the refresher keeps no row
--      holder: the digits of the refresher below a millisecond, at the end of its leases
--      elapsed: milliseconds since now: a copy may be that old
--      period: of a kept row, as returned here; '' = read it from delay:
--      json: '' = the source failed: keep the old copy; 'gone' = it has no such row
-- The lease, the longest period and the lifetime of a copy are those of `row_cache` (LEASE, MAX_PERIOD, lifetime).
-- returns a flat list: the due time of the first row that is not kept, or nil; then (due  period)* of the rows
--   A row that is not kept has no due time, and instead of the period -1 if it was removed, -2 if its lease was lost.
local schedule, delay = KEYS[1], KEYS[2]
local now, keep_by, holder, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], 30

local rows, place, periods, are_known = {}, {}, {}, true
for i = 5, #ARGV, 4 do
  rows[#rows + 1] = ARGV[i]
  place[ARGV[i]] = #rows
  periods[#rows] = tonumber(ARGV[i + 2])
  are_known = are_known and periods[#rows]
end
-- Upstash bills every call within a script. With few rows in the schedule, one call reads the leases and the first other
-- row.
local first, leases, found = false, {}, 0
local head = redis.call('ZRANGE', schedule, 0, #rows + 7, 'WITHSCORES')
for i = 1, #head, 2 do
  local index = place[head[i]]
  if index then
    leases[index], found = head[i + 1], found + 1
  else
    first = first or tonumber(head[i + 1])
  end
end
if found < #rows then leases = redis.call('ZMSCORE', schedule, unpack(rows)) end
if not are_known then periods = redis.call('ZMSCORE', delay, unpack(rows)) end

local changes, gone, copies, reply = {}, {}, {}, {}
for i, row in ipairs(rows) do
  local mine, json = ARGV[i * 4 + 2], ARGV[i * 4 + 4]
  local due, every = tonumber(leases[i]), math.min(tonumber(periods[i]) or 0, 31536000)
  reply[2 * i], reply[2 * i + 1] = false, false
  if due ~= tonumber(mine) then
    reply[2 * i + 1] = '-2'
    if due then first = math.min(first or due, due) end
  elseif json == 'gone' or every <= 0 then
    gone[#gone + 1], copies[#copies + 1], reply[2 * i + 1] = row, KEYS[i + 2], '-1'
  else
    -- Three periods: a copy outlives a missed cron.
    local lifetime = math.max(1, math.max(every * 3, 60) * 1000 - ARGV[4])
    if json ~= '' then redis.call('SET', KEYS[i + 2], json, 'PX', string.format('%.0f', lifetime)) end
    local wait = every
    if json == '' then
      -- After a failure a row waits one to two periods, at least a second and at most a lease. Readers may load a row
      -- without a copy 20 s before it is due, so it waits at least 21 s or a period. The rows of a query wait for four
      -- different times: a row that always fails gets a query with ever fewer others, and a source that is down gets at
      -- most four times as many queries.
      wait = math.min(math.max(every, 1), 21)
      wait = wait + math.min(wait, lease - wait) * ((i + holder) % 4) / 4
    end
    due = now + wait
    local score = string.format('%.3f', due)
    if due <= keep_by and every <= lease then
      reply[2 * i], reply[2 * i + 1] = score, string.format('%.17g', every)
      score = string.format('%.3f', due + lease) .. holder
    else
      first = math.min(first or due, due)
    end
    changes[#changes + 1] = score
    changes[#changes + 1] = row
  end
end
if #changes > 0 then redis.call('ZADD', schedule, unpack(changes)) end
if #gone > 0 then
  redis.call('ZREM', schedule, unpack(gone))
  redis.call('ZREM', delay, unpack(gone))
  redis.call('DEL', unpack(copies))
end
reply[1] = first and string.format('%.3f', first)
return reply
