#!lua flags=allow-key-locking
-- Reads the stored page that a request selects, unless it is purged, and grants the lease to render it.
-- KEYS viewed: cache:{hash} variants:{hash} render:{hash} purged:
-- ARGV item ('' = none), hash, now (ms), lease id, lease (ms; 0 = only look), lease even if fresh (1 or 0),
--   lease only if the page was stored before or its item ranks below this number ('' = always),
--   stamp of the entry that the caller has ('' = none), (header, value)*
-- returns {rank or nil, entry ('' for the entry that the caller has) or nil,
--   stamp (µs of Redis' clock) if the caller gets the lease, else nil,
--   'unstorable' (hit-for-miss), 'known' (it was stored, so it is for everybody) or '',
--   when it was soft-purged (µs) or nil, headers that it varies by}
local ranking, page, variants, lease, purged = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local item, hash, now = ARGV[1], ARGV[2], tonumber(ARGV[3])
local lease_id, lease_ms, even_if_fresh, below, held = ARGV[4], ARGV[5], ARGV[6] == '1', tonumber(ARGV[7]), ARGV[8]

local rank = item ~= '' and redis.call('ZRANK', ranking, item)
local entry, state, vary = redis.call('GET', page), '', ''
local fields = entry and string.match(entry, '^edgefront/2 vary ([^\n]*)$')
if fields then
  local given, variant = {}, ''
  for index = 9, #ARGV, 2 do given[ARGV[index]] = ARGV[index + 1] end
  for field in string.gmatch(fields, '[^,]+') do
    variant = variant .. field .. (given[field] and '=' .. given[field] or '') .. '\n'
  end
  entry, state, vary = redis.call('HGET', variants, variant), 'known', fields
end

local fresh, soft = false, false
local rendered, fresh_until, dies, tags = string.match(entry or '', '^edgefront/2 (%d+) %d+ (%d+) (%d+) ([^\n]*)\n')
if rendered and tonumber(dies) > now then
  local names = {'all', 'item:' .. item, 'url:' .. hash}
  for tag in string.gmatch(tags, '[^,]+') do names[#names + 1] = 'tag:' .. tag end
  local hard = #names
  for index = 1, hard do names[hard + index] = '~' .. names[index] end
  state, fresh = 'known', tonumber(fresh_until) > now
  for index, mark in ipairs(redis.call('ZMSCORE', purged, unpack(names))) do
    if mark and tonumber(mark) >= tonumber(rendered) then
      fresh = false
      if index <= hard then entry = false elseif not soft or mark < soft then soft = mark end
    end
  end
else
  entry = false
end

local stamp, is_wanted = false, not below or state == 'known' or (rank and rank < below)
if lease_ms ~= '0' and is_wanted and (even_if_fresh or not fresh) then
  local holder = redis.call('GET', lease)
  if holder == 'unstorable' then
    state = holder
  -- The caller's own id: the caller asks again because the reply was lost.
  elseif not holder or holder == lease_id then
    redis.call('SET', lease, lease_id, 'PX', lease_ms)
    -- The stamp is older than the render, so that a purge during the render voids its result.
    local time = redis.call('TIME')
    stamp = time[1] .. string.format('%06d', time[2])
  end
end
if entry and rendered == held then entry = '' end
return {rank, entry, stamp, state, soft, vary}
