#!lua flags=allow-key-locking
-- Ranks the items that are bought with an item, or by visitors who had viewed it.
-- It only reads.
-- KEYS bought:I [bought: rescaled:bought]
-- ARGV began half_life limit [I]
--      without the last two keys, the first is led-to:I
--      began: the Unix second at which the current half-life began; half_life in seconds
-- returns {orders, {item, score, …}}, best first, at most `limit` items; nil = nothing is known
--      score: with I the cosine of the two items, else the share of the orders
local counts, totals, marker = unpack(KEYS)
local began, half_life, limit, own = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local lifetime = 10

local function ended(since)
  return math.max(0, math.floor((began - since) / half_life))
end

-- The key is a hash: item → count, and '' → 'began scale orders partners'; see `learn`.
local all, since, scale, orders = redis.pcall('HGETALL', counts), nil, nil, nil
if all.err then
  -- Older versions wrote a JSON string.
  local ok, old = pcall(cjson.decode, redis.pcall('GET', counts))
  if not ok or type(old) ~= 'table' or type(old.items) ~= 'table' then return false end
  since, scale, orders, all = tonumber(old.began), 1, tonumber(old.orders), {}
  for item, count in pairs(old.items) do
    all[#all + 1] = item
    all[#all + 1] = count
  end
else
  for i = 1, #all, 2 do
    if all[i] == '' then since, scale, orders = string.match(all[i + 1], '^(%S+) (%S+) (%S+) %S+$') end
  end
  since, scale, orders = tonumber(since), tonumber(scale), tonumber(orders)
end
if not since or not scale or not orders or orders <= 0 or ended(since) >= lifetime then return false end

local items, values = {}, {}
for i = 1, #all, 2 do
  local value = tonumber(all[i + 1])
  if all[i] ~= '' and value then items[#items + 1], values[#values + 1] = all[i], value end
end

-- The score of the i-th item, nil for none. The totals may belong to another half-life than the counts.
local score = function(i) return values[i] / orders end
if own then
  local last = tonumber(redis.call('GET', marker))
  local weight = 0.5 ^ ended(since) / scale / (last and 0.5 ^ ended(last) or 1)
  local own_total, others = tonumber(redis.call('ZSCORE', totals, own)), {}
  if not own_total then return false end
  -- 1,000 at a time, because Lua passes at most about 8,000 arguments.
  for first = 1, #items, 1000 do
    local part = redis.call('ZMSCORE', totals, unpack(items, first, math.min(first + 999, #items)))
    for i = 1, #part do others[first + i - 1] = tonumber(part[i]) end
  end
  score = function(i) return others[i] and weight * values[i] / math.sqrt(own_total * others[i]) end
end

-- The best items in order. A sort of all of them would take ten times as long.
local best = {}
local function is_before(a, b)
  if a.score ~= b.score then return a.score > b.score end
  if a.value ~= b.value then return a.value > b.value end
  return a.item < b.item
end
for i, item in ipairs(items) do
  local found = score(i)
  if found and found < math.huge then
    -- A total that was dropped and started again may be smaller than the pair's count.
    found = math.min(1, found)
    if #best < limit or found >= best[#best].score then
      local entry, place = {item = item, score = found, value = values[i]}, #best + 1
      while place > 1 and is_before(entry, best[place - 1]) do place = place - 1 end
      table.insert(best, place, entry)
      best[limit + 1] = nil
    end
  end
end

local ranked = {}
for _, entry in ipairs(best) do
  ranked[#ranked + 1] = entry.item
  ranked[#ranked + 1] = string.format('%.17g', entry.score)
end
return {string.format('%.17g', orders / scale * 0.5 ^ ended(since)), ranked}
