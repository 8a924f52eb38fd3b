#!lua flags=allow-key-locking
-- Records that sessions were seen, and the items that they viewed.
-- KEYS login: recent: (viewed:T)*
-- ARGV idle_cutoff window touch_every trims (T now item began)*     seconds; four for each viewed:T; item '' = none
--      trims: a random number from 0 to 3
--      began: the start of a young session: login: alone decides, and its last activity is not read; '' = not young
-- returns for each session: 0 = it is not live, and nothing was written; 1 = recorded;
--   2 = recorded, and the view counts; 3 = the same, and it is a guest's session
local login, recent = KEYS[1], KEYS[2]
local idle_cutoff, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local touch_every, trims = tonumber(ARGV[3]), tonumber(ARGV[4])

local tokens, others = {}, {}
for i = 5, #ARGV, 4 do
  tokens[#tokens + 1] = ARGV[i]
  if ARGV[i + 3] == '' then others[#others + 1] = ARGV[i] end
end
local users = redis.call('HMGET', login, unpack(tokens))
local scores, read = #others > 0 and redis.call('ZMSCORE', recent, unpack(others)), 0

-- A view counts once per window. One new item in four pushes the oldest ones out, because each call is billed; readers
-- take the newest 25. An item that is in the list only moves.
local function view(viewed, now, item, trim)
  local added = redis.pcall('ZADD', viewed, 'NX', now, item)
  -- Another program may have stored another type. The other sessions of the call must not suffer.
  if type(added) ~= 'number' then
    redis.call('DEL', viewed)
    added = redis.call('ZADD', viewed, now, item)
  end
  if added == 1 then
    if trim then redis.call('ZREMRANGEBYRANK', viewed, 0, -26) end
    return true
  end
  local last = tonumber(redis.call('ZSCORE', viewed, item))
  redis.call('ZADD', viewed, 'GT', now, item)
  return now - last >= window
end

local touched, noted = {}, {}
for i, token in ipairs(tokens) do
  local now, item, seen = unpack(ARGV, i * 4 + 2, i * 4 + 4)
  if seen == '' then
    read = read + 1
    seen = scores[read]
  end
  if not users[i] or not seen or tonumber(seen) < idle_cutoff then
    noted[i] = 0
  else
    if now - seen >= touch_every then
      touched[#touched + 1] = now
      touched[#touched + 1] = token
    end
    local counts = item ~= '' and view(KEYS[i + 2], now, item, (i + trims) % 4 == 0)
    noted[i] = counts and (users[i] == '' and 3 or 2) or 1
  end
end
-- GT, so that a slow request or an isolate whose clock is behind cannot move a session back.
if #touched > 0 then redis.call('ZADD', recent, 'GT', unpack(touched)) end
return noted
