#!lua flags=allow-key-locking
-- Ends sessions. All that is stored of one goes in one step, and its cart is recorded first. A session that was seen since the
-- caller read its score is spared, and so is one that is neither idle nor, by the count of this moment, over the cap.
-- KEYS recent: login: abandoned: sessions:U devices:U (viewed:T cart:T)*
-- ARGV limit idle_cutoff U score*            oldest first; score '' = end it in any case: a logout;
--                                         U: whose they are, '' = not known; then the lists of their users are left as they are
-- returns {sessions ended, carts recorded}
local recent, login, abandoned, sessions, devices = unpack(KEYS, 1, 5)
local limit, idle_cutoff, whose = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local call, pcall, sub, encode = redis.call, redis.pcall, string.sub, cjson.encode

-- A key says whose it is, so no token is sent twice. Its name begins with its family and with what `abandoned:` has of the shard.
local after_family = #abandoned - #'abandoned:' + #'cart:' + 1
-- A copy of the scores has the right size. A table that grows to it moves seven times, which was a seventh of all that a session took.
local tokens = {unpack(ARGV, 4)}
for i = 1, #tokens do tokens[i] = sub(KEYS[i * 2 + 5], after_family) end
local scores = call('ZMSCORE', recent, unpack(tokens))
local users = call('HMGET', login, unpack(tokens))
local over = call('ZCARD', recent) - limit

-- Who is to end moves up over who is spared, in `tokens` and KEYS as they are: no table is made, for the same reason.
local last, ended, carts = 0, 0, 0
for i = 1, #tokens do
  local read_score, score, user = ARGV[i + 3], scores[i], users[i]
  local unchanged = score and (score == read_score or tonumber(score) == tonumber(read_score))
  if read_score == '' or (unchanged and (over > 0 or tonumber(score) < idle_cutoff)) then
    local token, viewed, cart = tokens[i], KEYS[i * 2 + 4], KEYS[i * 2 + 5]
    -- As it is: whatever other code may have put there (another type, a quantity that is no number), the session ends, and who
    -- reads the list sees what of it is a cart.
    local items = pcall('HGETALL', cart)
    if #items > 0 then
      call('XADD', abandoned, '*', 'user', user or whose, 'seen', score or '', 'items', encode(items))
      carts = carts + 1
    end
    if score then over = over - 1 end
    if score or user then ended = ended + 1 end
    last = last + 1
    tokens[last], KEYS[last * 2 + 4], KEYS[last * 2 + 5] = token, viewed, cart
  end
end
-- Together, because every call within a script is billed, and costs as much as what it does.
if carts > 0 then call('XTRIM', abandoned, 'MAXLEN', '~', 10000) end
if last > 0 then call('DEL', unpack(KEYS, 6, last * 2 + 5)) end
if ended > 0 then
  call('ZREM', recent, unpack(tokens, 1, last))
  call('HDEL', login, unpack(tokens, 1, last))
end
if whose ~= '' and last > 0 then
  pcall('ZREM', sessions, unpack(tokens, 1, last))
  pcall('HDEL', devices, unpack(tokens, 1, last))
end
return {ended, carts}
