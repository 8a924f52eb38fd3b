#!lua flags=allow-key-locking
-- Lists the live sessions of a user, newest login first.
-- It only reads.
-- KEYS login: recent: sessions:U devices:U
-- ARGV U
-- returns {token, last seen, value in devices:U or '', when it logged in}* of at most the 100 newest live logins
local login, recent, sessions, devices = unpack(KEYS)
local user = ARGV[1]

-- The list may name many tokens that have ended. The script looks at the 1,000 newest at most.
local living = {}
for first = 0, 900, 100 do
  local listed, tokens = redis.call('ZREVRANGE', sessions, first, first + 99, 'WITHSCORES'), {}
  if #listed == 0 then break end
  for i = 1, #listed, 2 do tokens[#tokens + 1] = listed[i] end
  local users = redis.call('HMGET', login, unpack(tokens))
  local seen = redis.call('ZMSCORE', recent, unpack(tokens))
  local values = redis.call('HMGET', devices, unpack(tokens))
  for i, token in ipairs(tokens) do
    if users[i] == user and seen[i] and #living < 100 then
      living[#living + 1] = {token, seen[i], values[i] or '', listed[i * 2]}
    end
  end
  if #tokens < 100 or #living == 100 then break end
end
return living
