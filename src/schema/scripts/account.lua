#!lua flags=allow-key-locking
-- Adds stored pages to the account of page sizes, and names the pages to evict if the account is nearly full.
-- `stored:` has three kinds of members. A hash has the time when the page was stored, in Unix milliseconds. `~` and a
-- hash has when it dies and its size, as -2^53 + seconds since 2020 * 2^22 + units of 64 bytes. The empty member has
-- the sum of all sizes, in units.
-- KEYS stored:
-- ARGV now (Unix seconds), limit of all pages (bytes), bytes that a page takes besides its values,
--   (hash, bytes, 1 if the bytes are added to what the page has, when it was stored (ms), when it dies (s))*
--   bytes -1 that are not added = the page was deleted
-- returns {bytes of all pages, {hash, when it was stored}* as a flat list of pages to evict}
local stored = KEYS[1]
local now, limit, besides = tonumber(ARGV[1]), tonumber(ARGV[2]) / 64, tonumber(ARGV[3])
local unit, epoch, base = 2 ^ 22, 1577836800, -2 ^ 53

local asked = {''}
for i = 4, #ARGV, 5 do asked[#asked + 1] = '~' .. ARGV[i] end
local scores = redis.call('ZMSCORE', stored, unpack(asked))
local total, pages = tonumber(scores[1]) or 0, {}
for i = 2, #asked do
  local score = tonumber(scores[i])
  local known = score and score - base or 0
  pages[string.sub(asked[i], 2)] = {size = known % unit, dies = math.floor(known / unit)}
end
for i = 4, #ARGV, 5 do
  local hash, bytes, adds = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2] == '1'
  local page, size = pages[hash], 0
  local dies = math.max(ARGV[i + 4] - epoch, 0)
  if adds or bytes >= 0 then
    size = math.ceil((bytes + besides) / 64)
    if adds and page.size > 0 then
      size, dies = page.size + math.floor(bytes / 64 + 0.5), math.max(dies, page.dies)
    end
    size = math.min(math.max(size, 1), unit - 1)
  end
  total = total + size - page.size
  pages[hash] = {size = size, dies = dies, at = ARGV[i + 3]}
end
local changes, gone = {}, {}
for hash, page in pairs(pages) do
  if page.size == 0 then
    gone[#gone + 1] = hash
    gone[#gone + 1] = '~' .. hash
  else
    changes[#changes + 1] = page.at
    changes[#changes + 1] = hash
    changes[#changes + 1] = string.format('%.0f', base + page.dies * unit + page.size)
    changes[#changes + 1] = '~' .. hash
  end
end
if #gone > 0 then redis.call('ZREM', stored, unpack(gone)) end

-- Near the limit, expired pages leave first, then those that were stored longest ago, until a sixteenth is free.
local near, leave = limit - limit / 16, {}
if total >= near then
  local last = string.format('(%.0f', base + math.max(now - epoch, 0) * unit)
  local over, dead = redis.call('ZRANGEBYSCORE', stored, '-inf', last, 'WITHSCORES', 'LIMIT', 0, 1000), {}
  for i = 1, #over, 2 do
    local hash = string.sub(over[i], 2)
    if not pages[hash] then
      total = total - (over[i + 1] - base) % unit
      dead[#dead + 1] = hash
      dead[#dead + 1] = over[i]
    end
  end
  if #dead > 0 then redis.call('ZREM', stored, unpack(dead)) end
end
if total >= near then
  local lacks, others = math.max(limit / 16, total - near), {}
  -- 2^40 is above every sum and below every time.
  local found = redis.call('ZRANGEBYSCORE', stored, 2 ^ 40, '+inf', 'WITHSCORES', 'LIMIT', 0, 256)
  for i = 1, #found, 2 do others[#others + 1] = '~' .. found[i] end
  local sizes = #others > 0 and redis.call('ZMSCORE', stored, unpack(others)) or {}
  for i, size in ipairs(sizes) do
    local hash = found[i * 2 - 1]
    if lacks <= 0 then break end
    if not pages[hash] then
      lacks = lacks - (size and (size - base) % unit or 0)
      leave[#leave + 1] = hash
      leave[#leave + 1] = found[i * 2]
    end
  end
end
-- The variants of one page alone may exceed the limit.
for hash, page in pairs(pages) do
  if page.size > limit then
    leave[#leave + 1] = hash
    leave[#leave + 1] = page.at
  end
end
changes[#changes + 1] = string.format('%.0f', total)
changes[#changes + 1] = ''
redis.call('ZADD', stored, unpack(changes))
return {total * 64, leave}
