#!lua flags=allow-key-locking
-- Ends a render: stores the page, and ends the lease.
-- It stores nothing if the lease is lost or the page was purged since.
-- KEYS cache:{hash} variants:{hash} render:{hash} purged: purged:latest [stored:]
--   stored: = add the page to the account of page sizes. Without it, and for variants, the caller does that.
-- ARGV the URL's own item ('' = none), hash, lease id, time to live (ms), headers that it varies by, variant, most variants,
--   keep the lease (1 = the page outlives it and there are no variants, so the page's own line ends it),
--   its size in units, when it is stored, when it dies and its size as in `account`,
--   entry ('' = nothing to store, 'unstorable …' = hit-for-miss note)
-- returns {1 if the page is stored, bytes, 1 if these bytes come in addition to the other variants}
--   A page that was deleted has -1 bytes. If the script adds the page to the account, bytes are those of all pages.
local page, variants, lease, purged, latest, stored = unpack(KEYS)
local item, hash, lease_id, ttl, vary, variant = unpack(ARGV)
local most, keeps, units, stored_at, dies, entry = tonumber(ARGV[7]), ARGV[8] == '1', unpack(ARGV, 9, 12)

local holder, newest = unpack(redis.call('MGET', lease, latest), 1, 2)
if holder ~= lease_id then return {0, 0, 0} end
if string.sub(entry, 1, 10) == 'unstorable' then
  -- The note keeps the lease from other requests for a while. The stored page is deleted, because it is out of date.
  redis.call('SET', lease, entry, 'PX', ttl)
  return {0, redis.call('DEL', page, variants) > 0 and -1 or 0, 0}
end

local function give_up()
  redis.call('DEL', lease)
  return {0, 0, 0}
end
local stamp, tags = string.match(entry, '^edgefront/3 (%d+) %d+ %d+ %d+ %x* ([^\n]*)\n')
if not stamp then return give_up() end
if (tonumber(newest) or 0) > tonumber(stamp) then
  local names = {'all', 'item:' .. item, 'url:' .. hash}
  for tag in string.gmatch(tags, '[^,]+') do
    local shown = string.match(tag, '^ (.*)')
    names[#names + 1] = shown and 'item:' .. shown or 'tag:' .. tag
  end
  local marks = redis.pcall('ZMSCORE', purged, unpack(names))
  if marks.err then return give_up() end
  for _, mark in ipairs(marks) do
    if mark and tonumber(mark) > tonumber(stamp) then return give_up() end
  end
end

if vary == '' then
  redis.call('SET', page, entry, 'PX', ttl)
  if not keeps then redis.call('DEL', lease, variants) end
  if not stored then return {1, #entry, 0} end
  local sum, before = unpack(redis.call('ZMSCORE', stored, '', '~' .. hash), 1, 2)
  sum = (sum or 0) + units - (before and (before + 2 ^ 53) % 2 ^ 22 or 0)
  redis.call('ZADD', stored, string.format('%.0f', sum), '', stored_at, hash, dies, '~' .. hash)
  return {1, sum * 64, 0}
end

-- The other variants stay if the same headers select them.
local index = 'edgefront/3 vary ' .. vary
local size, adds, gives_way = #entry + #variant + #index, 0, false
local stays = redis.pcall('GETRANGE', page, 0, #index) == index
if stays then
  local there, count = redis.pcall('HSTRLEN', variants, variant), redis.pcall('HLEN', variants)
  -- Another program may have stored another type.
  if type(count) ~= 'number' then there, count = 0, 0 end
  stays = count > 0
  if there > 0 then
    size, adds = #entry - there, 1
  elseif count > 0 then
    size, adds = #entry + #variant, 1
    gives_way = count >= most and redis.call('HRANDFIELD', variants)
    if gives_way then size = size - redis.call('HSTRLEN', variants, gives_way) - #gives_way end
  end
end
redis.call('DEL', lease, unpack(stays and {} or {variants}))
if gives_way then redis.call('HDEL', variants, gives_way) end
redis.call('HSET', variants, variant, entry)
ttl = math.max(tonumber(ttl), redis.call('PTTL', variants))
redis.call('PEXPIRE', variants, ttl)
redis.call('SET', page, index, 'PX', ttl)
return {1, size, adds}
