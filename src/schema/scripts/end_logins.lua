#!lua flags=allow-key-locking
-- Ends logins of a user: from now on their tokens are worth nothing. What else is stored under them is left to `reap`, by the
-- caller behind the answer, or else by the cleaning, which finds them in `recent:`.
-- KEYS login: sessions:U devices:U
-- ARGV U T device       T: the token of who asks, '' if it is in another shard; device: 'all', 'others' = all but T, 'own' = T, or an id
-- returns the tokens; none if there is no such device. A repetition finds the same, as long as `reap` was not there.
local login, sessions, devices = unpack(KEYS)
local user, own, device = unpack(ARGV)

local tokens = {}
if device == 'all' or device == 'others' then
  for _, token in ipairs(redis.call('ZRANGE', sessions, 0, -1)) do
    if token ~= own then tokens[#tokens + 1] = token end
  end
elseif device ~= 'own' then
  local known = redis.call('HGETALL', devices)
  for i = 1, #known, 2 do
    if known[i + 1]:sub(1, 16) == device then tokens[#tokens + 1] = known[i] end
  end
end

if own ~= '' and (device == 'all' or device == 'own') then tokens[#tokens + 1] = own end

-- A thousand at once: Lua passes no more than some 8,000 arguments.
for first = 1, #tokens, 1000 do
  local last = math.min(first + 999, #tokens)
  local users, mine = redis.call('HMGET', login, unpack(tokens, first, last)), {}
  for i = first, last do
    if users[i - first + 1] == user then mine[#mine + 1] = tokens[i] end
  end
  if #mine > 0 then redis.call('HDEL', login, unpack(mine)) end
end
return tokens
