#!lua flags=allow-key-locking
-- Ends a render: stores the page, and returns the lease.
-- It stores nothing if the lease is lost or the page was purged since. The account of page sizes never shows less than
-- is stored, and never more than the limit.
-- KEYS cache:{hash} variants:{hash} render:{hash} purged: pages: dying: bytes:
-- ARGV item ('' = none), hash, lease id, time to live (ms), headers that it varies by, variant, most variants,
--   most bytes of all pages, bytes that a page takes in addition to its entry,
--   entry ('' = nothing to store, 'unstorable …' = hit-for-miss note)
-- returns {1 if the page is stored, {hash, when it was stored}* as a flat list of pages to evict}
--   Near the limit, one store names such pages, so that later stores find room. If the page needs room first, the
--   script stores nothing and the lease stays.
local page, variants, lease, purged, pages, dying, bytes = unpack(KEYS)
local item, hash, lease_id, ttl, vary, variant = unpack(ARGV)
local most, limit, besides, entry = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]

-- Takes pages out of the account.
local function forget(gone)
  local freed = 0
  for _, size in ipairs(redis.call('HMGET', bytes, unpack(gone))) do freed = freed + (tonumber(size) or 0) end
  redis.call('HDEL', bytes, unpack(gone))
  redis.call('ZREM', pages, unpack(gone))
  redis.call('ZREM', dying, unpack(gone))
  if freed > 0 then redis.call('HINCRBY', bytes, 'total', -freed) end
end

-- The pages stored longest ago, except this one, that together take `lacks` bytes; each with the time when it was
-- stored.
local function oldest(lacks)
  local found, asked, leave = redis.call('ZRANGE', pages, 0, 255, 'WITHSCORES'), {}, {}
  for i = 1, #found, 2 do asked[#asked + 1] = found[i] end
  local sizes = #asked > 0 and redis.call('HMGET', bytes, unpack(asked)) or {}
  for i, other in ipairs(asked) do
    if lacks <= 0 then break end
    if other ~= hash then
      lacks = lacks - (tonumber(sizes[i]) or 0)
      leave[#leave + 1] = other
      leave[#leave + 1] = found[i * 2]
    end
  end
  return leave
end

if redis.call('GET', lease) ~= lease_id then return {0, {}} end
if string.sub(entry, 1, 10) == 'unstorable' then
  -- Nobody gets the lease for a while; and what is stored is not what the origin answers any more.
  redis.call('SET', lease, entry, 'PX', ttl)
  if redis.call('DEL', page, variants) > 0 then forget({hash}) end
  return {0, {}}
end

local function give_up()
  redis.call('DEL', lease)
  return {0, {}}
end
local rendered, tags = string.match(entry, '^edgefront/2 (%d+) %d+ %d+ %d+ ([^\n]*)\n')
if not rendered then return give_up() end
local names = {'all', 'item:' .. item, 'url:' .. hash}
for tag in string.gmatch(tags, '[^,]+') do
  local shown = string.match(tag, '^ (.*)')
  names[#names + 1] = shown and 'item:' .. shown or 'tag:' .. tag
end
for _, mark in ipairs(redis.call('ZMSCORE', purged, unpack(names))) do
  if mark and tonumber(mark) >= tonumber(rendered) then return give_up() end
end

-- Each store takes more expired pages out of the account than it adds, so there are never many.
local time = redis.call('TIME')
local now = time[1] .. string.format('%06d', time[2])
local over = redis.call('ZRANGEBYSCORE', dying, '-inf', '(' .. now, 'LIMIT', 0, 100)
if #over > 0 then forget(over) end

local known = redis.call('HMGET', bytes, hash, 'total')
local before, total = tonumber(known[1]) or 0, tonumber(known[2]) or 0
local index = 'edgefront/2 vary ' .. vary
local size, gives_way = besides + #entry, false
-- The other variants stay if the same headers select them and the account has them.
local stay = vary ~= '' and before > 0 and redis.call('GETRANGE', page, 0, #index) == index
if vary ~= '' then
  size = size + #variant + #index
  local there = stay and redis.call('HSTRLEN', variants, variant) or 0
  local count = there == 0 and stay and redis.call('HLEN', variants)
  if there > 0 then
    size = before - there + #entry
  elseif count and count > 0 then
    size = before + #entry + #variant
    gives_way = count >= most and redis.call('HRANDFIELD', variants)
    if gives_way then size = size - redis.call('HSTRLEN', variants, gives_way) - #gives_way end
  else
    stay = false
  end
end

if size > limit then return give_up() end
-- Without a total, the pages in `pages:` are not in the account and must go.
local lacks = known[2] and total - before + size - limit or 1
if lacks > 0 then
  local leave = oldest(lacks + limit / 16)
  if #leave > 0 then return {0, leave} end
  -- There is no other page: this is the first page, or other code has deleted a part of the account.
  redis.call('DEL', bytes, dying)
  total = before
end

redis.call('DEL', lease, unpack(stay and {} or {variants}))
if vary == '' then
  redis.call('SET', page, entry, 'PX', ttl)
else
  if gives_way then redis.call('HDEL', variants, gives_way) end
  redis.call('HSET', variants, variant, entry)
  ttl = math.max(tonumber(ttl), redis.call('PTTL', variants))
  redis.call('PEXPIRE', variants, ttl)
  redis.call('SET', page, index, 'PX', ttl)
end
redis.call('ZADD', pages, now, hash)
-- One millisecond after the page dies, because Redis expires a key with that precision.
redis.call('ZADD', dying, string.format('%.0f', now + (ttl + 1) * 1000), hash)
local after, near = total - before + size, limit - limit / 16
redis.call('HSET', bytes, hash, size, 'total', after)
return {1, total < near and after >= near and oldest(limit / 16) or {}}
