#!lua flags=allow-key-locking
-- Reads the stored page that a request selects, unless it is purged, and grants the lease to render it.
-- KEYS viewed: cache:{hash} variants:{hash} render:{hash} purged: purged:latest [login: [recent:]]
-- ARGV item ('' = none), the URL's own item ('' = none), hash, now (ms), lease id, lease (ms; 0 = only look, without a write),
--   lease even if fresh (1 or 0),
--   lease only if the page was stored before or its item ranks below this number ('' = always),
--   render of the entry that the caller has ('' = none), token ('' = no session to check),
--   session only if the page is not fresh (1 or 0), (header, value)*
--   Without recent:, the session is young, and its score is not read.
-- returns {rank or nil, entry ('' for the entry that the caller has) or nil,
--   stamp (of the latest purge, 0 = none) if the caller gets the lease, else nil,
--   'unstorable …' (the hit-for-miss note), 'known' (it was stored before) or '',
--   when it was soft-purged (µs) or nil,
--   {headers that it varies by, {value in login: or nil, score in recent: or nil} or nil if the session was not read}}
--   The rank of a fresh page's item is nil, except for a caller that only looks and has no entry.
local ranking, page, variants, lease, purged, latest, login, recent = unpack(KEYS)
local item, of_url, hash, now = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local lease_id, lease_ms, even_if_fresh, below, held = ARGV[5], ARGV[6], ARGV[7] == '1', tonumber(ARGV[8]), ARGV[9]
local token, only_if_stale = ARGV[10], ARGV[11] == '1'

local entry, holder, newest = unpack(redis.call('MGET', page, lease, latest), 1, 3)
-- Another program may have damaged any key. Such a key counts as missing.
newest = newest and string.match(newest, '^%d+$')
local state, vary = '', ''
local fields = entry and string.match(entry, '^edgefront/3 vary ([^\n]*)$')
if fields then
  local given, variant = {}, ''
  for index = 12, #ARGV, 2 do given[ARGV[index]] = ARGV[index + 1] end
  for field in string.gmatch(fields, '[^,]+') do
    variant = variant .. field .. (given[field] and '=' .. given[field] or '') .. '\n'
  end
  entry, state, vary = redis.pcall('HGET', variants, variant), 'known', fields
  entry = type(entry) == 'string' and entry
end

-- The first hard and the first soft purge after the purge `stamp`, false without one. After the tags may follow the item
-- that the origin named: ', item'. If no purge came after `stamp`, one comparison suffices.
local function purges_after(stamp, tags)
  if tonumber(newest or 0) <= tonumber(stamp) and (newest or stamp == '0') then return false, false end
  local names, hard_mark, soft_mark = {'all', 'item:' .. item, 'item:' .. of_url, 'url:' .. hash}, false, false
  for tag in string.gmatch(tags, '[^,]+') do
    local shown = string.match(tag, '^ (.*)')
    names[#names + 1] = shown and 'item:' .. shown or 'tag:' .. tag
  end
  local hard = #names
  for index = 1, hard do names[hard + index] = '~' .. names[index] end
  local marks = redis.pcall('ZMSCORE', purged, unpack(names))
  if marks.err then return true, false end
  for index, mark in ipairs(marks) do
    if mark and tonumber(mark) > tonumber(stamp) then
      if index <= hard then hard_mark = mark elseif not soft_mark or mark < soft_mark then soft_mark = mark end
    end
  end
  return hard_mark, soft_mark
end

local fresh, soft = false, false
local stamp, fresh_until, dies, render, tags =
  string.match(entry or '', '^edgefront/3 (%d+) %d+ (%d+) (%d+) (%x*) ([^\n]*)\n')
-- The page names the render that stored it, so its lease has ended. So does the caller's entry, even if another program has
-- deleted the page.
if holder and (holder == render or holder == held) then holder = false end
if stamp and tonumber(dies) > now then
  local hard
  hard, soft = purges_after(stamp, tags)
  state, fresh = 'known', tonumber(fresh_until) > now and not hard and not soft
  if hard then entry = false end
else
  entry = false
end

-- The item that the stored page names wins.
local shown, rank = entry and string.match(tags, ', (%S+)$') or item, false
if shown ~= '' and (not fresh or even_if_fresh or lease_ms == '0' and held == '') then
  rank = redis.pcall('ZRANK', ranking, shown)
  rank = type(rank) == 'number' and rank
end
local granted, is_wanted = false, not below or state == 'known' or (rank and rank < below)
if not fresh or (lease_ms ~= '0' and even_if_fresh) then
  local noted, its_tags = string.match(holder or '', '^unstorable (%d+) %S+ ([^\n]*)\n')
  -- A purge voids the note.
  if noted then
    local hard_mark, soft_mark = purges_after(noted, its_tags)
    if hard_mark or soft_mark then holder = false end
  end
  if holder and string.sub(holder, 1, 10) == 'unstorable' then
    state = holder
  -- The caller holds the lease already: the reply to its first call was lost.
  elseif lease_ms ~= '0' and is_wanted and (not holder or holder == lease_id) then
    redis.call('SET', lease, lease_id, 'PX', lease_ms)
    -- The stamp is from before the render, so that a purge during the render voids the page.
    granted = newest or '0'
  end
end
local session = false
if token ~= '' and not (fresh and only_if_stale) then
  local user = redis.call('HGET', login, token)
  session = {user, user and recent and redis.call('ZSCORE', recent, token) or false}
end
if entry and held ~= '' and render == held then entry = '' end
return {rank, entry, granted, state, soft, {vary, session}}
