#!lua flags=allow-key-locking
-- Reads a page, unless its item is unpopular or it has been purged, and hands out the lease to render it.
-- KEYS viewed: cache:{hash} render:{hash} purged:
-- ARGV item, hash, now (ms), rank limit, lease id, lease (ms; 0 = only look)
-- Returns {rank or nil, entry or nil, stamp (µs of Redis' clock) if the lease is the caller's, else nil}
local ranking, page, lease, purged = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local item, hash, now, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local lease_id, lease_ms = ARGV[5], ARGV[6]

local rank = redis.call('ZRANK', ranking, item)
if not rank or rank >= limit then return {rank, false, false} end

local entry, fresh = redis.call('GET', page), false
if entry then
  local rendered, fresh_until, tags = string.match(entry, '^edgefront/1 (%d+) %d+ (%d+) ([^\n]*)\n')
  if rendered then
    local names = {'all', 'item:' .. item, 'url:' .. hash}
    for tag in string.gmatch(tags, '[^,]+') do names[#names + 1] = 'tag:' .. tag end
    fresh = tonumber(fresh_until) > now
    for _, mark in ipairs(redis.call('ZMSCORE', purged, unpack(names))) do
      if mark and tonumber(mark) >= tonumber(rendered) then entry, fresh = false, false end
    end
  else
    entry = false
  end
end

if fresh or lease_ms == '0' or not redis.call('SET', lease, lease_id, 'NX', 'PX', lease_ms) then
  return {rank, entry, false}
end
-- Before the render: a purge that comes later than this wins over what is rendered now.
local time = redis.call('TIME')
return {rank, entry, time[1] .. string.format('%06d', time[2])}
