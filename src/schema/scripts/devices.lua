#!lua flags=allow-key-locking
-- Lists the live sessions of a user, newest login first.
-- It only reads.
-- KEYS login: recent: sessions:U devices:U
-- ARGV U
-- returns {token, last seen, value in devices:U or '', when it logged in}* of at most the 100 newest logins
local login, recent, sessions, devices = unpack(KEYS)
local user = ARGV[1]

local listed, tokens = redis.call('ZREVRANGE', sessions, 0, 99, 'WITHSCORES'), {}
if #listed == 0 then return {} end
for i = 1, #listed, 2 do tokens[#tokens + 1] = listed[i] end
local users = redis.call('HMGET', login, unpack(tokens))
local seen = redis.call('ZMSCORE', recent, unpack(tokens))
local values = redis.call('HMGET', devices, unpack(tokens))
local living = {}
for i, token in ipairs(tokens) do
  if users[i] == user and seen[i] then living[#living + 1] = {token, seen[i], values[i] or '', listed[i * 2]} end
end
return living
