-- Moves ranking, pages, rows, flash sales and insights between the book's names (viewed:) and names with hash tags
-- (viewed:{pages}). It finds the keys itself, so it cannot declare them: it needs one server, and on Upstash it locks the
-- database while it runs.
--
-- Isolates may have written under both names in the meantime. Counts are added, so no run loses any.
-- ARGV tags | book, cursor (0 at first), keys to look at, half-lives of the ranking and of the insights in seconds
-- returns the next cursor (0 = all keys were looked at), moved keys
local to_tags, cursor, count = ARGV[1] == 'tags', ARGV[2], ARGV[3]
local ranking_half_life, insights_half_life = ARGV[4], ARGV[5]
local moved = 0
local call = redis.call

local tags = {
  viewed = '{pages}', ranked = '{pages}', purged = '{pages}', stored = '{pages}', cache = '{pages}', variants = '{pages}',
  schedule = '{rows}', delay = '{rows}', inv = '{rows}', flash = '{rows}', held = '{rows}',
  order = '{orders}', bought = '{orders}', ['led-to'] = '{orders}',
}

local function rename(family, name, tag)
  tag = tag or tags[family]
  local plain, tagged = family .. ':' .. name, family .. ':' .. tag .. name
  if to_tags then return plain, tagged end
  return tagged, plain
end

local function kind_of(key) return call('TYPE', key).ok end

-- The key lives at least `ttl` milliseconds.
local function prolong(key, ttl)
  if ttl > call('PTTL', key) then call('PEXPIRE', key, ttl) end
end

-- Weights of two counts that were last decayed in the half-lives that began then, and the later beginning. Counts without
-- a beginning are of now.
local function decay(a, b, half_life)
  local later = math.max(a or b or 0, b or a or 0)
  local function weight(since) return since and 0.5 ^ math.floor((later - since) / half_life) or 1 end
  return weight(a), weight(b), later
end

-- The ranking, and the orders of each item. The marker names the half-life of the counts.
local function move_totals(family, marker, half_life)
  local from, to = rename(family, '')
  local marker_from, marker_to = rename('rescaled', marker, tags[family])
  if call('EXISTS', from) == 0 then return end
  local weight_from, weight_to, began =
    decay(tonumber(call('GET', marker_from)), tonumber(call('GET', marker_to)), half_life)
  call('ZUNIONSTORE', to, 2, from, to, 'WEIGHTS', weight_from, weight_to)
  if began > 0 then call('SET', marker_to, string.format('%.0f', began)) end
  call('DEL', from)
  moved = moved + 1
end

-- Items that were bought with an item, or after it was viewed: item → count, and '' → 'began scale orders items'.
local function read_meta(key)
  local began, scale, orders = string.match(call('HGET', key, '') or '', '^(%S+) (%S+) (%S+) %S+$')
  return tonumber(began), tonumber(scale), tonumber(orders)
end

-- Adds insights. A string (of an older version) and a hash without its empty field are replaced.
local function add_insights(from, to)
  if kind_of(from) ~= 'hash' then return end
  local began_from, scale_from, orders_from = read_meta(from)
  if not (began_from and scale_from and orders_from) then return end
  local began_to, scale_to, orders_to
  if kind_of(to) == 'hash' then began_to, scale_to, orders_to = read_meta(to) end
  if not (began_to and scale_to and orders_to) then return call('RENAME', from, to) end
  local weight_from, weight_to, began = decay(began_from, began_to, insights_half_life)
  -- The counts of `to` stay as they are, in a larger unit.
  local scale = scale_to / weight_to
  local factor = weight_from * scale / scale_from
  local fields, ttl = call('HGETALL', from), call('PTTL', from)
  for i = 1, #fields, 2 do
    local item, orders = fields[i], tonumber(fields[i + 1])
    if item ~= '' and orders then call('HINCRBYFLOAT', to, item, string.format('%.17g', orders * factor)) end
  end
  local orders = orders_to + orders_from * factor
  call('HSET', to, '', string.format('%d %.17g %.17g %d', began, scale, orders, call('HLEN', to) - 1))
  prolong(to, ttl)
end

-- The schedule of rows. The value of the new names stays, because an isolate of the new layout wrote it.
local function add_rows(from, to)
  local rows = call('ZRANGE', from, 0, -1, 'WITHSCORES')
  for i = 1, #rows, 2 do call('ZADD', to, 'NX', rows[i + 1], rows[i]) end
end

-- The account of page sizes. The empty member is the sum; a member with ~ has a size in its last 22 bits. A page that
-- both accounts name counts once.
local function add_account(from, to)
  local members = call('ZRANGE', from, 0, -1, 'WITHSCORES')
  local sum = tonumber(call('ZSCORE', from, '')) or 0
  for i = 1, #members, 2 do
    local member, score = members[i], members[i + 1]
    if member ~= '' and call('ZADD', to, 'NX', score, member) == 0 and member:sub(1, 1) == '~' then
      sum = sum - (tonumber(score) + 2 ^ 53) % 2 ^ 22
    end
  end
  call('ZINCRBY', to, string.format('%.0f', sum), '')
end

-- An order. The field `cart` stays, because it belongs to the cart's session.
local function move_order(from, to)
  local fields, ttl, stays, copied = call('HGETALL', from), call('PTTL', from), false, 0
  for i = 1, #fields, 2 do
    local field = fields[i]
    local sale = field:match('^flash:(.*)')
    if sale and to_tags then field = 'flash:{rows}' .. sale:gsub('^{rows}', '') end
    if sale and not to_tags then field = 'flash:' .. sale:gsub('^{rows}', '') end
    if field == 'cart' and to_tags then stays = true else copied = copied + call('HSETNX', to, field, fields[i + 1]) end
  end
  if copied > 0 or not stays then moved = moved + 1 end
  prolong(to, ttl)
  if not stays then call('DEL', from) end
end

-- If the sale has another window under each name, deletes the earlier one, which is over, with its holds.
local function drop_earlier_window(name)
  local from, to = rename('flash', name)
  local held_from, held_to = rename('held', name)
  local window_from, window_to = tonumber(call('HGET', from, 'window')), tonumber(call('HGET', to, 'window'))
  if not window_from or not window_to or window_from == window_to then return end
  if window_from < window_to then call('DEL', from, held_from) else call('DEL', to, held_to) end
end

-- A sale. An order that both names have is sold once.
local function add_sale(from, to)
  local fields, sold = call('HGETALL', from), 0
  for i = 1, #fields, 2 do
    local field = fields[i]
    if field ~= 'sold' and field ~= 'upkeep' and call('HSETNX', to, field, fields[i + 1]) == 1 and field:find('^order:') then
      sold = sold + 1
    end
  end
  call('HINCRBY', to, 'sold', sold)
  -- The next reservation counts the holds of both.
  call('HDEL', to, 'upkeep')
  prolong(to, call('PTTL', from))
end

local function move(family, name, tag)
  local from, to = rename(family, name, tag)
  if family == 'flash' or family == 'held' then drop_earlier_window(name) end
  if call('EXISTS', from) == 0 then return end
  if family == 'order' then return move_order(from, to) end
  moved = moved + 1
  if call('EXISTS', to) == 0 then return call('RENAME', from, to) end
  if family == 'stored' then
    add_account(from, to)
  elseif family == 'flash' then
    add_sale(from, to)
  elseif family == 'schedule' or family == 'delay' then
    add_rows(from, to)
  elseif family == 'bought' or family == 'led-to' then
    add_insights(from, to)
  elseif kind_of(from) == 'zset' then
    -- ZUNIONSTORE removes the expiry of `to`.
    local ttl = math.max(call('PTTL', from), call('PTTL', to))
    call('ZUNIONSTORE', to, 2, from, to, 'AGGREGATE', 'MAX')
    prolong(to, ttl)
  elseif name == 'latest' then
    if tonumber(call('GET', from)) > tonumber(call('GET', to)) then call('SET', to, call('GET', from)) end
  end
  -- Otherwise, the value of the new name is newer.
  call('DEL', from)
end

-- Before any page, so that a purge holds for it.
move('purged', '')
move('purged', 'latest')
if cursor == '0' then
  for _, family in ipairs({'ranked', 'stored'}) do move(family, '') end
  move_totals('viewed', '', ranking_half_life)
  move_totals('bought', 'bought', insights_half_life)
  move('rescaled', '', '{pages}')
  move('rescaled', 'bought', '{orders}')
  -- A sale needs its row, so all rows move in this one step: no isolate sees a sale without its reservations.
  for _, family in ipairs({'schedule', 'delay'}) do
    for _, row in ipairs(call('ZRANGE', (rename(family, '')), 0, -1)) do
      for _, own in ipairs({'flash', 'held', 'inv'}) do move(own, row) end
    end
  end
  move('schedule', '')
  move('delay', '')
end
local found = call('SCAN', cursor, 'COUNT', count)
for _, key in ipairs(found[2]) do
  local family, name = key:match('^([^:]+):(.+)$')
  local tag = family and tags[family]
  -- The first call of each run moves the keys without a name.
  if tag and name ~= tag and family ~= 'viewed' and family ~= 'purged' then
    local is_tagged = name:sub(1, #tag) == tag
    -- `order:{3}A-1` belongs to a shard.
    local is_shared = is_tagged or name:sub(1, 1) ~= '{'
    if is_shared and is_tagged ~= to_tags then move(family, is_tagged and name:sub(#tag + 1) or name) end
  end
end
return {found[1], moved}
