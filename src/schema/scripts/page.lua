#!lua flags=allow-key-locking
-- Reads the stored page that a request selects, unless it is purged, and grants the lease to render it.
-- KEYS viewed: cache:{hash} variants:{hash} render:{hash} purged:
-- ARGV item ('' = none), hash, now (ms), lease id, lease (ms; 0 = only look), lease even if fresh (1 or 0),
--   lease only if the page was stored before or its item ranks below this number ('' = always),
--   stamp of the entry that the caller has ('' = none), (header, value)*
-- returns {rank or nil, entry ('' for the entry that the caller has) or nil,
--   stamp (µs of Redis' clock) if the caller gets the lease, else nil,
--   'unstorable …' (the hit-for-miss note), 'known' (it was stored before) or '',
--   when it was soft-purged (µs) or nil, headers that it varies by}
local ranking, page, variants, lease, purged = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local item, hash, now = ARGV[1], ARGV[2], tonumber(ARGV[3])
local lease_id, lease_ms, even_if_fresh, below, held = ARGV[4], ARGV[5], ARGV[6] == '1', tonumber(ARGV[7]), ARGV[8]

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

-- The first hard and the first soft purge after the moment `stamp` (µs), false without one. Behind the tags may be the item
-- that the origin named: ', item'.
local function purges_after(stamp, tags)
  local names, hard_mark, soft_mark = {'all', 'item:' .. item, 'url:' .. hash}, false, false
  for tag in string.gmatch(tags, '[^,]+') do
    local shown = string.match(tag, '^ (.*)')
    names[#names + 1] = shown and 'item:' .. shown or 'tag:' .. tag
  end
  local hard = #names
  for index = 1, hard do names[hard + index] = '~' .. names[index] end
  for index, mark in ipairs(redis.call('ZMSCORE', purged, unpack(names))) do
    if mark and tonumber(mark) >= tonumber(stamp) then
      if index <= hard then hard_mark = mark elseif not soft_mark or mark < soft_mark then soft_mark = mark end
    end
  end
  return hard_mark, soft_mark
end

local fresh, soft = false, false
local rendered, fresh_until, dies, tags = string.match(entry or '', '^edgefront/2 (%d+) %d+ (%d+) (%d+) ([^\n]*)\n')
if rendered and tonumber(dies) > now then
  local hard
  hard, soft = purges_after(rendered, tags)
  state, fresh = 'known', tonumber(fresh_until) > now and not hard and not soft
  if hard then entry = false end
else
  entry = false
end

-- The item that the stored page names wins.
local shown = entry and string.match(tags, ', (%S+)$') or item
local rank = shown ~= '' and redis.call('ZRANK', ranking, shown)
local stamp, is_wanted = false, not below or state == 'known' or (rank and rank < below)
if not fresh or (lease_ms ~= '0' and even_if_fresh) then
  local holder = redis.call('GET', lease)
  local noted, its_tags = string.match(holder or '', '^unstorable (%d+) %S+ ([^\n]*)\n')
  -- A purge voids the note.
  if noted then
    local hard_mark, soft_mark = purges_after(noted, its_tags)
    if hard_mark or soft_mark then holder = false end
  end
  if holder and string.sub(holder, 1, 10) == 'unstorable' then
    state = holder
  -- Its own id: the reply to its first call was lost.
  elseif lease_ms ~= '0' and is_wanted and (not holder or holder == lease_id) then
    redis.call('SET', lease, lease_id, 'PX', lease_ms)
    -- Before the render: a later purge voids what is rendered now.
    local time = redis.call('TIME')
    stamp = time[1] .. string.format('%06d', time[2])
  end
end
if entry and rendered == held then entry = '' end
return {rank, entry, stamp, state, soft, vary}
