#!lua flags=allow-key-locking
-- Notes that sessions were seen, and which items they looked at.
-- KEYS login: recent: (viewed:T)*
-- ARGV idle_cutoff window touch_every (T now item)*     seconds; a triple for each viewed:T; item '' = none
-- returns for each: 0 = no such session, and nothing was written; 1 = noted; 2 = and the view counts; 3 = and it is a guest's
local login, recent = KEYS[1], KEYS[2]
local idle_cutoff, window, touch_every = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local tokens = {}
for i = 4, #ARGV, 3 do tokens[#tokens + 1] = ARGV[i] end
local users = redis.call('HMGET', login, unpack(tokens))
local seen = redis.call('ZMSCORE', recent, unpack(tokens))

-- A view counts once in a window. A new item makes room for itself; one that stands there already only moves.
local function view(viewed, now, item)
  if redis.call('ZADD', viewed, 'NX', now, item) == 1 then
    redis.call('ZREMRANGEBYRANK', viewed, 0, -26)
    return true
  end
  local last = tonumber(redis.call('ZSCORE', viewed, item))
  redis.call('ZADD', viewed, 'GT', now, item)
  return now - last >= window
end

local touched, noted = {}, {}
for i, token in ipairs(tokens) do
  local now, item = ARGV[i * 3 + 2], ARGV[i * 3 + 3]
  if not users[i] or not seen[i] or tonumber(seen[i]) < idle_cutoff then
    noted[i] = 0
  else
    if now - seen[i] >= touch_every then
      touched[#touched + 1] = now
      touched[#touched + 1] = token
    end
    local counts = item ~= '' and view(KEYS[i + 2], now, item)
    noted[i] = counts and (users[i] == '' and 3 or 2) or 1
  end
end
-- GT: a request that was slow, or an isolate whose clock is behind, moves nothing back.
if #touched > 0 then redis.call('ZADD', recent, 'GT', unpack(touched)) end
return noted
