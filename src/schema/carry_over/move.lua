-- Moves ranking, pages, rows, flash sales and insights between the book's names (viewed:) and names with hash tags
-- (viewed:{pages}). It finds the keys itself, so it cannot declare them: it needs one server, and on Upstash it locks the
-- database while it runs.
--
-- Values that isolates wrote under the former names in the meantime are added, so no run loses anything.
-- ARGV tags | book, cursor (0 at first), keys to look at
-- returns the next cursor (0 = all keys were looked at), moved keys
local to_tags, cursor, count = ARGV[1] == 'tags', ARGV[2], ARGV[3]
local moved = 0
local call = redis.call

local tags = {
  viewed = '{pages}', ranked = '{pages}', purged = '{pages}', stored = '{pages}', cache = '{pages}', variants = '{pages}',
  schedule = '{rows}', delay = '{rows}', inv = '{rows}', flash = '{rows}', held = '{rows}',
  order = '{orders}', bought = '{orders}', ['led-to'] = '{orders}',
}
-- How two sorted sets become one.
local aggregates = {viewed = 'SUM', bought = 'SUM', schedule = 'MIN', delay = 'MIN'}

local function rename(family, name, tag)
  tag = tag or tags[family]
  local plain, tagged = family .. ':' .. name, family .. ':' .. tag .. name
  if to_tags then return plain, tagged end
  return tagged, plain
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
  if ttl > 0 and call('EXISTS', to) == 1 then call('PEXPIRE', to, ttl) end
  if not stays then call('DEL', from) end
end

local function add_sale(from, to)
  local fields = call('HGETALL', from)
  for i = 1, #fields, 2 do
    if fields[i] == 'sold' then
      call('HINCRBY', to, 'sold', fields[i + 1])
    elseif fields[i] ~= 'upkeep' then
      call('HSETNX', to, fields[i], fields[i + 1])
    end
  end
  -- The next reservation counts the holds of both.
  call('HDEL', to, 'upkeep')
end

local function move(family, name, tag)
  local from, to = rename(family, name, tag)
  if call('EXISTS', from) == 0 then return end
  if family == 'order' then return move_order(from, to) end
  moved = moved + 1
  if call('EXISTS', to) == 0 then return call('RENAME', from, to) end
  local kind, ttl = call('TYPE', from).ok, call('PTTL', from)
  if family == 'stored' then
    add_account(from, to)
  elseif family == 'flash' then
    add_sale(from, to)
  elseif kind == 'zset' then
    call('ZUNIONSTORE', to, 2, from, to, 'AGGREGATE', aggregates[family] or 'MAX')
    if ttl > 0 then call('PEXPIRE', to, ttl) end
  elseif name == 'latest' then
    if tonumber(call('GET', from)) > tonumber(call('GET', to)) then call('SET', to, call('GET', from)) end
  elseif (family == 'bought' or family == 'led-to') and call('HLEN', from) > call('HLEN', to) then
    -- Counts with different half-lives cannot be added. The larger ones stay.
    return call('RENAME', from, to)
  end
  -- Else what is there is newer.
  call('DEL', from)
end

-- Before any page, so that a purge holds for it.
move('purged', '')
move('purged', 'latest')
if cursor == '0' then
  for _, family in ipairs({'viewed', 'ranked', 'stored', 'bought'}) do move(family, '') end
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
  if tag and family ~= 'viewed' and family ~= 'purged' and family ~= 'stored' then
    local is_tagged = name:sub(1, #tag) == tag
    -- `order:{3}A-1` belongs to a shard.
    local is_shared = is_tagged or name:sub(1, 1) ~= '{'
    if is_shared and is_tagged ~= to_tags then move(family, is_tagged and name:sub(#tag + 1) or name) end
  end
end
return {found[1], moved}
