#!lua flags=allow-key-locking
-- Ends sessions and records their carts as abandoned.
-- All keys of a session go in one step. The script spares a session that was seen since the caller read its score, and
-- a session that is neither idle nor over the limit at this moment.
-- KEYS recent: login: abandoned: sessions:U devices:U (viewed:T cart:T)*
-- ARGV limit idle_cutoff U score*      oldest session first; score '' = a logout: end it in any case
--                                      U: the sessions' user, '' = not known: then the users' lists stay as they are
-- returns {sessions ended, carts recorded}
local recent, login, abandoned, sessions, devices = unpack(KEYS, 1, 5)
local limit, idle_cutoff, whose = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local call, pcall, sub, encode = redis.call, redis.pcall, string.sub, cjson.encode

-- The keys contain the tokens, so the caller does not send them again. A key begins with its family and the hash tag,
-- which is as long as the one of `abandoned:`.
local after_family = #abandoned - #'abandoned:' + #'cart:' + 1
-- A copy of the scores has the right size. A growing table moves seven times, which took a seventh of a session's time.
local tokens = {unpack(ARGV, 4)}
for i = 1, #tokens do tokens[i] = sub(KEYS[i * 2 + 5], after_family) end
local scores = call('ZMSCORE', recent, unpack(tokens))
local users = call('HMGET', login, unpack(tokens))
local over = call('ZCARD', recent) - limit

-- `end_logins` has ended the logins of sessions without a user, and keeps their users in other fields.
local ended_fields, owners = {}, {}
for i = 1, #tokens do
  if not users[i] then ended_fields[#ended_fields + 1] = 'ended:' .. tokens[i] end
end
if #ended_fields > 0 then
  for i, owner in ipairs(call('HMGET', login, unpack(ended_fields))) do owners[ended_fields[i]] = owner or nil end
end
ended_fields = {}

-- Sessions to end move up over the spared ones, within `tokens` and KEYS: for the same reason, this needs no new table.
local last, ended, carts = 0, 0, 0
for i = 1, #tokens do
  local read_score, score, user = ARGV[i + 3], scores[i], users[i]
  local unchanged = score and (score == read_score or tonumber(score) == tonumber(read_score))
  if read_score == '' or (unchanged and (over > 0 or tonumber(score) < idle_cutoff)) then
    local token, viewed, cart = tokens[i], KEYS[i * 2 + 4], KEYS[i * 2 + 5]
    local owner = user
    if not user then
      owner = owners['ended:' .. token]
      if owner then ended_fields[#ended_fields + 1] = 'ended:' .. token end
    end
    -- Other code may have stored anything here: another type, or a quantity that is not a number. The session ends in
    -- any case, and readers of the list skip entries that are not carts.
    local items = pcall('HGETALL', cart)
    if #items > 0 then
      local added = pcall('XADD', abandoned, '*', 'user', owner or whose, 'seen', score or '', 'items', encode(items))
      -- A damaged list costs only its entries. After any other error, the session keeps its cart.
      if not added.err then carts = carts + 1 elseif not added.err:find('WRONGTYPE') then return added end
    end
    if score then over = over - 1 end
    if score or user then ended = ended + 1 end
    last = last + 1
    tokens[last], KEYS[last * 2 + 4], KEYS[last * 2 + 5] = token, viewed, cart
  end
end
-- One call for all sessions: Upstash bills every call within a script, and a call costs as much time as its work.
if carts > 0 then call('XTRIM', abandoned, 'MAXLEN', '~', 10000) end
if last > 0 then call('DEL', unpack(KEYS, 6, last * 2 + 5)) end
if ended > 0 then
  call('ZREM', recent, unpack(tokens, 1, last))
  call('HDEL', login, unpack(tokens, 1, last))
end
if #ended_fields > 0 then call('HDEL', login, unpack(ended_fields)) end
if whose ~= '' and last > 0 then
  pcall('ZREM', sessions, unpack(tokens, 1, last))
  pcall('HDEL', devices, unpack(tokens, 1, last))
end
return {ended, carts}
