#!lua flags=allow-key-locking
-- Ends sessions. All that is stored of one goes in one step, and its cart is recorded first. A session that was seen since the
-- caller read its score is spared, and so is one that is neither idle nor, by the count of this moment, over the cap.
-- KEYS recent: login: abandoned: sessions:U devices:U (viewed:T cart:T)*
-- ARGV limit idle_cutoff U score*            oldest first; score '' = end it in any case: a logout;
--                                         U: whose they are, '' = not known; then the lists of their users are left as they are
-- returns {sessions ended, carts recorded}
local recent, login, abandoned, sessions, devices = unpack(KEYS, 1, 5)
local limit, idle_cutoff, whose = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

-- A key says whose it is, so no token is sent twice. Its name begins with its family and with what `abandoned:` has of the shard.
local after_family = #abandoned - #'abandoned:' + #'cart:' + 1
local tokens = {}
for i = 7, #KEYS, 2 do tokens[#tokens + 1] = KEYS[i]:sub(after_family) end
local scores = redis.call('ZMSCORE', recent, unpack(tokens))
local users = redis.call('HMGET', login, unpack(tokens))
local over = redis.call('ZCARD', recent) - limit

local gone, data, carts = {}, {}, 0
for i, token in ipairs(tokens) do
  local read_score, score, user = ARGV[i + 3], scores[i], users[i]
  local unchanged = score and (score == read_score or tonumber(score) == tonumber(read_score))
  if read_score == '' or (unchanged and (over > 0 or tonumber(score) < idle_cutoff)) then
    local viewed, cart = KEYS[i * 2 + 4], KEYS[i * 2 + 5]
    -- As it is: whatever other code may have put there (another type, a quantity that is no number), the session ends, and who
    -- reads the list sees what of it is a cart.
    local items = redis.pcall('HGETALL', cart)
    if #items > 0 then
      redis.call('XADD', abandoned, '*', 'user', user or whose, 'seen', score or '', 'items', cjson.encode(items))
      carts = carts + 1
    end
    if score then over = over - 1 end
    if score or user then gone[#gone + 1] = token end
    data[#data + 1] = viewed
    data[#data + 1] = cart
  end
end
-- Together, because every call within a script is billed, and costs as much as what it does.
if carts > 0 then redis.call('XTRIM', abandoned, 'MAXLEN', '~', 10000) end
if #data > 0 then redis.call('DEL', unpack(data)) end
if #gone > 0 then
  redis.call('ZREM', recent, unpack(gone))
  redis.call('HDEL', login, unpack(gone))
end
if whose ~= '' then
  redis.pcall('ZREM', sessions, unpack(tokens))
  redis.pcall('HDEL', devices, unpack(tokens))
end
return {#gone, carts}
