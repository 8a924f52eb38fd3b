#!lua flags=allow-key-locking
-- Ends a render: stores the page, unless another renders it by now or it was purged meanwhile, and gives the lease back.
-- KEYS cache:{hash} render:{hash} purged:
-- ARGV item, hash, lease id, time to live (ms), entry ('' = nothing to store)
-- Returns 1 if the page is stored
local page, lease, purged = KEYS[1], KEYS[2], KEYS[3]
local item, hash, lease_id, ttl, entry = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if redis.call('GET', lease) ~= lease_id then return 0 end
redis.call('DEL', lease)

local rendered, tags = string.match(entry, '^edgefront/1 (%d+) %d+ %d+ ([^\n]*)\n')
if not rendered then return 0 end
local names = {'all', 'item:' .. item, 'url:' .. hash}
for tag in string.gmatch(tags, '[^,]+') do names[#names + 1] = 'tag:' .. tag end
for _, mark in ipairs(redis.call('ZMSCORE', purged, unpack(names))) do
  if mark and tonumber(mark) >= tonumber(rendered) then return 0 end
end
redis.call('SET', page, entry, 'PX', ttl)
return 1
