#!lua flags=allow-key-locking
-- Counts an order in the insights, once per order.
-- Every count belongs to the half-life that its key names. The script first decays it to the current half-life.
-- KEYS order:O bought: rescaled:bought (bought:I)* (led-to:V)*
-- ARGV began half_life keep order_ttl report I*
--      began: the Unix second at which the current half-life began; half_life and order_ttl in seconds
--      keep: how many totals stay
--      report: names the report, also if its reply was lost and it comes again
-- returns 1; 0 = another report of this order was counted before
local order, totals, marker = KEYS[1], KEYS[2], KEYS[3]
local began, half_life, keep, order_ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local report, bought = ARGV[5], {unpack(ARGV, 6)}
local most_partners, kept_partners, lifetime = 10000, 8000, 10

if redis.call('HSETNX', order, 'insights', report) == 0 then
  return redis.call('HGET', order, 'insights') == report and 1 or 0
end
redis.call('EXPIRE', order, order_ttl)

-- Number of half-lives that have ended since the one that began at `since`. 0 if the caller's clock is behind.
local function ended(since)
  return math.max(0, math.floor((began - since) / half_life))
end

local last = tonumber(redis.call('GET', marker))
local halvings = last and ended(last) or 0
if not last or halvings > 0 then redis.call('SET', marker, ARGV[1]) end
if halvings > 0 then
  redis.call('ZUNIONSTORE', totals, 1, totals, 'WEIGHTS', 0.5 ^ halvings)
  -- Drops items with less than a millionth of an order: smaller scores would lose their order.
  redis.call('ZREMRANGEBYSCORE', totals, '-inf', 0.5 ^ 20)
end
for _, item in ipairs(bought) do redis.call('ZINCRBY', totals, 1, item) end
redis.call('ZREMRANGEBYRANK', totals, 0, -keep - 1)

-- A key is a hash: item → count, and '' → 'began scale orders partners'. An order adds `scale` to its counts, and each
-- half-life doubles `scale`. So old counts decay without a write, and their present value is count / scale.
local function meta(text)
  local since, scale, orders, partners = string.match(text or '', '^(%S+) (%S+) (%S+) (%S+)$')
  since, scale = tonumber(since), tonumber(scale)
  if not since or not scale or ended(since) >= lifetime then return nil end
  return {since = since, scale = scale, orders = tonumber(orders) or 0, partners = tonumber(partners) or 0}
end

local function exact(number)
  return string.format('%.17g', number)
end

local function meta_text(m)
  return string.format('%d %.17g %.17g %d', m.since, m.scale, m.orders, m.partners)
end

-- Replaces the key by the best of `counts`, in units of one order. Counts below a millionth of an order are dropped.
local function replace(key, m, counts)
  local items = {}
  for item, count in pairs(counts) do
    if item ~= '' and (tonumber(count) or 0) > 0.5 ^ 20 then items[#items + 1] = item end
  end
  if #items > most_partners then
    table.sort(items, function(a, b)
      if counts[a] ~= counts[b] then return counts[a] > counts[b] end
      return a < b
    end)
  end
  m.partners = #items > most_partners and kept_partners or #items
  redis.call('DEL', key)
  -- 1,000 at a time, because Lua passes at most about 8,000 arguments.
  for first = 1, m.partners, 1000 do
    local fields = {}
    for i = first, math.min(first + 999, m.partners) do
      fields[#fields + 1] = items[i]
      fields[#fields + 1] = exact(counts[items[i]])
    end
    redis.call('HSET', key, unpack(fields))
  end
  redis.call('HSET', key, '', meta_text(m))
  redis.call('EXPIRE', key, lifetime * half_life)
  return m
end

-- Older versions wrote a JSON string. Anything else that is not a hash is deleted.
local function convert(key)
  local ok, old = pcall(cjson.decode, redis.pcall('GET', key))
  redis.call('DEL', key)
  if not ok or type(old) ~= 'table' or type(old.items) ~= 'table' or not tonumber(old.began) then return end
  replace(key, {since = tonumber(old.began), scale = 1, orders = tonumber(old.orders) or 0}, old.items)
end

-- Adds the order to a key. It counts the items of the order except `own`.
local function add(key, own)
  local fields = {''}
  for _, item in ipairs(bought) do
    if item ~= own then fields[#fields + 1] = item end
  end
  local known = redis.pcall('HMGET', key, unpack(fields))
  if known.err then
    convert(key)
    known = redis.call('HMGET', key, unpack(fields))
  end
  local m = meta(known[1])
  if not m then
    if known[1] then redis.call('DEL', key) end
    m, known = {since = began, scale = 1, orders = 0, partners = 0}, {}
  end
  local halvings = ended(m.since)
  if halvings > 0 then m.since, m.scale = began, m.scale * 2 ^ halvings end
  local written = {}
  for i = 2, #fields do
    if not known[i] then m.partners = m.partners + 1 end
    written[#written + 1] = fields[i]
    written[#written + 1] = exact((tonumber(known[i]) or 0) + m.scale)
  end
  m.orders = m.orders + m.scale
  redis.call('HSET', key, '', meta_text(m), unpack(written))
  -- The lifetime counts from the first order of a half-life.
  if halvings > 0 or not known[1] then redis.call('EXPIRE', key, lifetime * half_life) end
  -- A double loses small counts beside large ones, so the script rescales all counts before that happens.
  if m.partners > most_partners or m.scale > 2 ^ 30 then
    local counts, all = {}, redis.call('HGETALL', key)
    for i = 1, #all, 2 do counts[all[i]] = (tonumber(all[i + 1]) or 0) / m.scale end
    m.orders, m.scale = m.orders / m.scale, 1
    replace(key, m, counts)
  end
end

for i = 4, #KEYS do
  -- The item of a `bought:` key, which does not count itself. nil for a `led-to:` key, which does.
  local own = bought[i - 3]
  if not own or #bought > 1 then add(KEYS[i], own) end
end
return 1
