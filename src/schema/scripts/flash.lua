#!lua flags=allow-key-locking
-- Reads a flash sale as one visitor sees it, and reserves a piece if the caller asks for one.
-- It reads everything that the decision depends on at one moment.
-- KEYS schedule: delay: inv:{sale} flash:{sale} held:{sale} [login: [recent:]]
-- ARGV operation who idle_cutoff sale now gone_by hold_ends id keep touch_every
--      operation: look or reserve; who: a token if there is login:, else a user, '' = no user
--      without recent:, the session is young: login: alone decides, and the visit needs no record
--      gone_by: a hold that ended by then has given its piece back
--      hold_ends, id: the end and the id of a new hold, the id without its window
--      keep: seconds for which the keys outlive the sale; touch_every: of an activity, seconds
-- returns a JSON object with `outcome`, and if there is such a sale: due every starts ends pieces sold left held
--      price_cents list_cents bought, and of the visitor's hold: id until
--      After `reserve`, every is 0, because the script does not read the schedule
--      outcome: seen, held, or the reason: nobody, already-bought, not-started, ended, sold-out; no-copy, no-sale
local schedule, delay, copy, sale, held, login, recent = unpack(KEYS)
local operation, who, idle_cutoff, name = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local now, gone_by, hold_ends, id, keep = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local touch_every = tonumber(ARGV[10])

-- Other code may have stored anything here. If it is not a JSON object, the caller loads the row again.
local json, is_json, row = redis.pcall('GET', copy), false, nil
if type(json) == 'string' and json:find('^%s*{') then is_json, row = pcall(cjson.decode, json) end
-- Ending a schedule also deletes the copy. So a reservation checks the copy only: each call is billed.
local due, every = now, 0
if operation ~= 'reserve' or not is_json then
  due, every = redis.call('ZSCORE', schedule, name), redis.call('ZSCORE', delay, name)
  if not due or not every or tonumber(every) <= 0 then return '{"outcome":"no-sale"}' end
end
if not is_json then return '{"outcome":"no-copy"}' end

-- A database may hold anything (text, null, a huge number). None of it may become an error here.
local function column(column_name)
  local value = tonumber(row[column_name])
  return value and value >= 0 and value < 1e11 and math.floor(value) or nil
end
local starts, ends, pieces = column('sale_starts_at'), column('sale_ends_at'), column('sale_pieces')
if not starts or not ends or not pieces then return '{"outcome":"no-sale"}' end

local user = login and (redis.call('HGET', login, who) or '') or who
local seen
if recent and user ~= '' then
  seen = redis.call('ZSCORE', recent, who)
  if not seen or tonumber(seen) < idle_cutoff then user = '' end
end

-- If the keys name another window, they belong to a sale that is over.
local window = string.format('%d', starts)
local known = redis.call('HMGET', sale, 'window', 'sold', 'bought:' .. user, 'hold:' .. user, 'upkeep')
local is_new = known[1] ~= window
if is_new then known = {window, false, false, false, false} end
-- When the keys expire, a moment before which no hold ends, and the number of stored holds.
local expires, first, stored = string.match(known[5] or '', '^(%d+) (%S+) (%d+)$')
first, stored = tonumber(first) or 0, tonumber(stored) or 0
if is_new then first, stored = tonumber(hold_ends), 0 end
-- Neither number exceeds the pieces sold: the row may be some seconds old, and `sold` lacks orders that were not
-- reported. So the larger number is the better one.
local sold = math.max(column('sale_sold') or 0, tonumber(known[2]) or 0)
local bought, mine = known[3] and true or false, known[4]
-- Until the first one ends, all stored holds count.
local is_due, holds = first <= tonumber(gone_by), stored
if is_due then holds = redis.call('ZCOUNT', held, '(' .. gone_by, '+inf') end
local left = math.max(0, pieces - sold - holds)
local mine_ends = mine and redis.call('ZSCORE', held, user)
-- The visitor's hold ends at the time that the visitor was told; its piece comes back some seconds later. In between,
-- the visitor has no hold and no priority.
if not mine_ends or tonumber(mine_ends) <= now then mine = false end

-- Purchases must be known until the end of the sale, also if it has moved while the sale is sold out.
local is_expiry_current = tonumber(expires) == ends + keep
if operation == 'reserve' and not is_new and not is_expiry_current and now < ends then
  redis.call('HSET', sale, 'upkeep', string.format('%.0f %.3f %d', ends + keep, first, stored))
  redis.call('EXPIREAT', sale, ends + keep)
  redis.call('EXPIREAT', held, ends + keep)
  is_expiry_current = true
end

local function take()
  if is_new then redis.call('DEL', sale, held) end
  -- Deletes up to 1,000 holds that are over, so that there are never more holds than pieces.
  if is_due then
    local over = redis.call('ZRANGEBYSCORE', held, '-inf', gone_by, 'LIMIT', 0, 1000)
    if #over > 0 then
      redis.call('ZREM', held, unpack(over))
      for i, other in ipairs(over) do over[i] = 'hold:' .. other end
      redis.call('HDEL', sale, unpack(over))
    end
    first = tonumber(redis.call('ZRANGE', held, 0, 0, 'WITHSCORES')[2] or hold_ends)
    stored = redis.call('ZCARD', held)
  end
  mine, mine_ends = window .. '.' .. id, hold_ends
  -- Without holds, the key is new.
  local is_key_new = stored == 0
  if redis.call('ZADD', held, mine_ends, user) == 1 then left, holds, stored = left - 1, holds + 1, stored + 1 end
  local upkeep = string.format('%.0f %.3f %d', ends + keep, math.min(first, tonumber(hold_ends)), stored)
  redis.call('HSET', sale, 'window', window, 'upkeep', upkeep, 'hold:' .. user, mine)
  if not is_expiry_current then redis.call('EXPIREAT', sale, ends + keep) end
  if not is_expiry_current or is_key_new then redis.call('EXPIREAT', held, ends + keep) end
  if seen and now - tonumber(seen) >= touch_every then redis.call('ZADD', recent, 'GT', ARGV[5], who) end
  return 'held'
end

local outcome = 'seen'
if operation == 'reserve' then
  if user == '' then outcome = 'nobody'
  elseif bought then outcome = 'already-bought'
  elseif mine then outcome = 'held'
  elseif now < starts then outcome = 'not-started'
  elseif now >= ends then outcome = 'ended'
  elseif left < 1 then outcome = 'sold-out'
  else outcome = take() end
end

local answer = {
  outcome = outcome, due = tonumber(due), every = tonumber(every),
  starts = starts, ends = ends, pieces = pieces, sold = sold, left = left, held = holds,
  price_cents = column('sale_price_cents'), list_cents = column('price_cents'), bought = bought,
}
if mine then answer['id'], answer['until'] = mine, tonumber(mine_ends) end
return cjson.encode(answer)
