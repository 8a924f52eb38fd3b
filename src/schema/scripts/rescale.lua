#!lua flags=allow-key-locking
-- Halves the ranking once for each half-life that has ended since the last rescale, and keeps the best ranks.
-- Also remembers the first 100 ranks for an hour, about every 5 minutes.
-- KEYS viewed: rescaled: ranked: ranked:hour
-- ARGV began (Unix second at which the current half-life began)  half_life (seconds)  keep (ranks)  now (Unix second)
-- returns {halvings, items beyond the kept ranks, items forgotten}; halvings is 0 if there was nothing to halve
local ranking, marker, ranked, hour = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local began, half_life, keep, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- Without a marker, no halving is due: views must not be halved for the time before them.
local marked = tonumber(redis.call('GET', marker))
local halvings = math.floor((began - (marked or began)) / half_life)
local trimmed = redis.call('ZREMRANGEBYRANK', ranking, keep, -1)
if halvings >= 1 or not marked then redis.call('SET', marker, ARGV[1]) end

-- An entry is at least 4 minutes younger than the one before, however often the job runs. The last entry is the only one
-- that is an hour old.
local function age(index)
  local entry = redis.call('LINDEX', hour, index)
  return entry and now - tonumber(entry:match('^%d+'))
end
local newest = age(0)
if not newest or newest >= 240 then
  local items = redis.call('ZRANGE', ranking, 0, 99)
  if #items > 0 then redis.call('LPUSH', hour, ARGV[4] .. cjson.encode(items)) end
  while (age(-2) or 0) >= 3600 do redis.call('RPOP', hour) end
  redis.call('EXPIRE', hour, 7200)
end

if halvings < 1 then return {0, trimmed, 0} end

-- Keeps the first 100 ranks for later comparison. Halving changes no rank.
redis.call('ZRANGESTORE', ranked, ranking, 0, 99)
local halved, forgotten = redis.call('ZUNIONSTORE', ranking, 1, ranking, 'WEIGHTS', 0.5 ^ halvings), 0
-- Forgets a single view after ten half-lives: smaller scores would lose their order.
if halved > 0 then forgotten = redis.call('ZREMRANGEBYSCORE', ranking, -(0.5 ^ 10), '+inf') end
if halved > 0 and halved == forgotten then redis.call('DEL', marker) end
return {halved > 0 and halvings or 0, trimmed, forgotten}
