#!lua flags=allow-key-locking
-- Starts a user's session under a new token and ends the old session.
-- The old session's cart and views move to the new session, unless they belong to another user.
-- If another program has damaged the user's lists, the session starts without an entry there.
-- KEYS login: recent: abandoned: sessions:U devices:U viewed:N cart:N [viewed:O cart:O once:L] [once:K]
-- ARGV N U now idle_cutoff O retry_ttl once_ttl device
--      N, O: the new and the old token, O '' = none; the lifetimes in seconds; device: the value in devices:U
--      once:L: N; if the cart of O does not move, a space follows, and the token to which an earlier login moved it
--      once:K: the idempotency key
-- returns the token: N, or the token of the live session that an earlier attempt, known by once:K or else by once:L, began
local login, recent, abandoned, sessions, devices = unpack(KEYS)
local new, user, now, idle_cutoff, old, retry_ttl, once_ttl, device = unpack(ARGV)
local replaced, once = KEYS[10], KEYS[old == '' and 8 or 11]

local function begun(key)
  local known = key and redis.pcall('GET', key)
  known = type(known) == 'string' and known:match('%S+')
  local is_live = known and redis.call('HGET', login, known) == user
    and (tonumber(redis.call('ZSCORE', recent, known)) or 0) >= tonumber(idle_cutoff)
  return is_live and known
end
local known = begun(once)
if known then return known end
-- A repeated login of the same user in place of the same session, with another idempotency key or none.
known = begun(replaced)
if known then
  if once then redis.call('SET', once, known, 'EX', once_ttl) end
  return known
end

local owner = old ~= '' and redis.call('HGET', login, old)
local seen = owner and redis.call('ZSCORE', recent, old)
local moves = false
-- An expired session is left to the cleanup, which records its cart.
if seen and tonumber(seen) >= tonumber(idle_cutoff) then
  local old_viewed, old_cart = KEYS[8], KEYS[9]
  moves = owner == '' or owner == user
  if moves then
    -- A token that was just drawn has no keys, so RENAME overwrites nothing.
    if redis.call('EXISTS', old_viewed) == 1 then redis.call('RENAME', old_viewed, KEYS[6]) end
    if redis.call('EXISTS', old_cart) == 1 then redis.call('RENAME', old_cart, KEYS[7]) end
  else
    local items = redis.pcall('HGETALL', old_cart)
    if #items > 0 then
      local added = redis.pcall(
        'XADD', abandoned, 'MAXLEN', '~', 10000, '*', 'user', owner, 'seen', seen, 'items', cjson.encode(items)
      )
      -- A damaged list costs only its entries.
      if added.err and not added.err:find('WRONGTYPE') then return added end
    end
    redis.call('DEL', old_viewed, old_cart)
  end
  redis.call('HDEL', login, old)
  redis.call('ZREM', recent, old)
end

if replaced then
  local before = not moves and redis.pcall('GET', replaced)
  local place = type(before) == 'string' and (before:match(' (.*)') or before) or ''
  redis.call('SET', replaced, moves and new or new .. ' ' .. place, 'EX', retry_ttl)
end
if once then redis.call('SET', once, new, 'EX', once_ttl) end
redis.call('HSET', login, new, user)
redis.call('ZADD', recent, now, new)

-- A logout does not know the user and leaves its token in the list. Drops ended tokens among the 100 oldest or the 100
-- newest, so that the list stays short. A random byte of the new token chooses.
local mine, dead = redis.pcall(new:byte(12) % 2 == 0 and 'ZRANGE' or 'ZREVRANGE', sessions, 0, 99), {}
if #mine > 0 then
  local users = redis.call('HMGET', login, unpack(mine))
  for i, token in ipairs(mine) do
    if not users[i] then dead[#dead + 1] = token end
  end
end
if #dead > 0 then
  redis.call('ZREM', sessions, unpack(dead))
  redis.pcall('HDEL', devices, unpack(dead))
end
-- No session outlives 400 days, the largest SESSION_MAX_AGE, and this session is the youngest. The lists do not follow a smaller
-- SESSION_MAX_AGE: if it is raised later, they must still name the earlier sessions.
local longest_age = 400 * 24 * 3600
if type(redis.pcall('ZADD', sessions, now, new)) == 'number' then redis.call('EXPIRE', sessions, longest_age) end
if type(redis.pcall('HSET', devices, new, device)) == 'number' then redis.call('EXPIRE', devices, longest_age) end
return new
