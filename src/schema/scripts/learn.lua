#!lua flags=allow-key-locking
-- Counts an order in the insights, once. Every count is of the half-life that its key names, and is brought to the present one first.
-- KEYS order:O bought: rescaled:bought (bought:I)* (led-to:V)*
-- ARGV began half_life keep order_ttl I*
--      began: the Unix second in which the present half-life began; half_life and order_ttl in seconds; keep: how many totals
-- returns 1; 0 = this order was counted before
local order, totals, marker = KEYS[1], KEYS[2], KEYS[3]
local began, half_life, keep, order_ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local bought = {unpack(ARGV, 5)}
local most_items, kept_items, lifetime = 120, 100, 10

if redis.call('HSETNX', order, 'insights', 1) == 0 then return 0 end
redis.call('EXPIRE', order, order_ttl)

-- How many half-lives have ended since the one that began then; 0 too for a clock that runs behind.
local function ended(since)
  return math.max(0, math.floor((began - since) / half_life))
end

local last = tonumber(redis.call('GET', marker))
local halvings = last and ended(last) or 0
if not last or halvings > 0 then redis.call('SET', marker, ARGV[1]) end
if halvings > 0 then
  redis.call('ZUNIONSTORE', totals, 1, totals, 'WEIGHTS', 0.5 ^ halvings)
  -- A millionth of an order: it says nothing, and scores would shrink until their order is lost.
  redis.call('ZREMRANGEBYSCORE', totals, '-inf', 0.5 ^ 20)
end
for _, item in ipairs(bought) do redis.call('ZINCRBY', totals, 1, item) end
redis.call('ZREMRANGEBYRANK', totals, 0, -keep - 1)

-- {began, orders, items: {item: count}} as of the present half-life; empty if there is none, or none that can be read.
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

-- Beyond 120 items the best 100 stay: so the sorting comes with every twentieth new one, and a new one has time to grow.
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

-- One string for a key, and not a sorted set: every call is billed, and this takes one, however many items it counts.
local texts = redis.call('MGET', unpack(KEYS, 4))
for i, text in ipairs(texts) do
  -- The item whose `bought:` this is; none for a `led-to:`, which counts the item itself, too.
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
