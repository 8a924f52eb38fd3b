#!lua flags=allow-key-locking
-- Counts an order in the insights, once per order.
-- Every count belongs to the half-life that its key names. The script first decays it to the current half-life.
-- KEYS order:O bought: rescaled:bought (bought:I)* (led-to:V)*
-- ARGV began half_life keep order_ttl I*
--      began: the Unix second at which the current half-life began; half_life and order_ttl in seconds
--      keep: how many totals stay
-- returns 1; 0 = this order was counted before
local order, totals, marker = KEYS[1], KEYS[2], KEYS[3]
local began, half_life, keep, order_ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local bought = {unpack(ARGV, 5)}
local most_items, kept_items, lifetime = 120, 100, 10

if redis.call('HSETNX', order, 'insights', 1) == 0 then return 0 end
redis.call('EXPIRE', order, order_ttl)

-- How many half-lives have ended since the one that began at `since`. 0 if the caller's clock is behind.
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

-- {began, orders, items: {item: count}} in the current half-life; empty if the key is absent or unreadable.
local function read(text)
  local ok, counts = pcall(cjson.decode, text or '')
  local known = ok and type(counts) == 'table' and type(counts.items) == 'table' and tonumber(counts.began)
  local halvings = known and ended(known) or lifetime
  if halvings >= lifetime then return {began = began, orders = 0, items = {}} end
  if halvings > 0 then
    local factor = 0.5 ^ halvings
    counts.began, counts.orders = began, counts.orders * factor
    for item, count in pairs(counts.items) do counts.items[item] = count * factor end
  end
  return counts
end

-- Beyond 120 items, the best 100 stay. So only every twentieth new item causes a sort, and a new item has time to grow.
local function write(key, counts)
  local items = {}
  for item in pairs(counts.items) do items[#items + 1] = item end
  if #items > most_items then
    table.sort(items, function(a, b)
      local x, y = counts.items[a], counts.items[b]
      if x ~= y then return x > y end
      return a < b
    end)
    for i = kept_items + 1, #items do counts.items[items[i]] = nil end
  end
  redis.call('SET', key, cjson.encode(counts), 'EX', lifetime * half_life)
end

-- A key is one string and not a sorted set. Upstash bills every call, and a string takes one call for any number of
-- items.
local texts = redis.call('MGET', unpack(KEYS, 4))
for i, text in ipairs(texts) do
  -- The item of a `bought:` key, which does not count itself. nil for a `led-to:` key, which does.
  local own = bought[i]
  if not own or #bought > 1 then
    local counts = read(text)
    counts.orders = counts.orders + 1
    for _, item in ipairs(bought) do
      if item ~= own then counts.items[item] = (counts.items[item] or 0) + 1 end
    end
    write(KEYS[i + 3], counts)
  end
end
return 1
