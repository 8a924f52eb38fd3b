#!lua flags=allow-key-locking
-- Ends logins of a user, so that their tokens are worthless at once.
-- Their carts and views stay until the caller runs `reap` after its response. If that fails, the cleanup finds them in
-- `recent:`. Until then, the field `ended:T` of `login:` keeps the user of the cart. It is no token.
-- KEYS login: sessions:U devices:U
-- ARGV U T device       T: the caller's token, '' if it is in another shard
--                       device: 'all', 'others' = all but T, 'own' = T, or a device's id
-- returns the tokens; none if there is no such device. A repetition returns the same tokens until `reap` has run.
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
    local token = known[i]
    -- The list may name tokens that have ended.
    if known[i + 1]:sub(1, 16) == device
      and (redis.call('HGET', login, token) == user or redis.call('HEXISTS', login, 'ended:' .. token) == 1) then
      tokens[#tokens + 1] = token
    end
  end
end

if own ~= '' and (device == 'all' or device == 'own') then tokens[#tokens + 1] = own end

-- 1,000 at a time, because Lua passes at most about 8,000 arguments.
for first = 1, #tokens, 1000 do
  local last = math.min(first + 999, #tokens)
  local users, mine, ended = redis.call('HMGET', login, unpack(tokens, first, last)), {}, {}
  for i = first, last do
    if users[i - first + 1] == user then
      mine[#mine + 1] = tokens[i]
      ended[#ended + 1] = 'ended:' .. tokens[i]
      ended[#ended + 1] = user
    end
  end
  if #mine > 0 then
    redis.call('HDEL', login, unpack(mine))
    redis.call('HSET', login, unpack(ended))
  end
end
return tokens
