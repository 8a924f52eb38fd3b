#!lua flags=allow-key-locking
-- Ends a render: stores the page, unless another renders it by now or it was purged meanwhile, and gives the lease back.
-- KEYS cache:{hash} variants:{hash} render:{hash} purged:
-- ARGV item ('' = none), hash, lease id, time to live (ms), headers that it varies by, variant, variants at the most,
--   entry ('' = nothing to store, 'unstorable' = note that)
-- Returns 1 if the page is stored
local page, variants, lease, purged = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local item, hash, lease_id, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local vary, variant, most, entry = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8]

if redis.call('GET', lease) ~= lease_id then return 0 end
if entry == 'unstorable' then
  -- Nobody gets the lease for a while; and what is stored is not what the origin answers any more.
  redis.call('SET', lease, entry, 'PX', ttl)
  redis.call('DEL', page, variants)
  return 0
end
redis.call('DEL', lease)

local rendered, tags = string.match(entry, '^edgefront/2 (%d+) %d+ %d+ %d+ ([^\n]*)\n')
if not rendered then return 0 end
local names = {'all', 'item:' .. item, 'url:' .. hash}
for tag in string.gmatch(tags, '[^,]+') do names[#names + 1] = 'tag:' .. tag end
for _, mark in ipairs(redis.call('ZMSCORE', purged, unpack(names))) do
  if mark and tonumber(mark) >= tonumber(rendered) then return 0 end
end

if vary == '' then
  redis.call('SET', page, entry, 'PX', ttl)
  redis.call('DEL', variants)
  return 1
end
local index = 'edgefront/2 vary ' .. vary
-- A page that varies by other headers now: the old variants are found no more.
if redis.call('GETRANGE', page, 0, #index) ~= index then redis.call('DEL', variants) end
if redis.call('HEXISTS', variants, variant) == 0 and redis.call('HLEN', variants) >= most then
  redis.call('HDEL', variants, redis.call('HRANDFIELD', variants))
end
redis.call('HSET', variants, variant, entry)
local life = math.max(tonumber(ttl), redis.call('PTTL', variants))
redis.call('PEXPIRE', variants, life)
redis.call('SET', page, index, 'PX', life)
return 1
