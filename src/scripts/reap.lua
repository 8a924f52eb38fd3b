#!lua flags=allow-key-locking
-- Ends sessions. All that is stored of one goes in one step, and its cart is recorded first. A session that was seen since the
-- caller read its score is spared, and so is one that is neither idle nor, by the count of this moment, over the cap.
-- KEYS recent: login: abandoned: (viewed:T cart:T sessions:U devices:U)*
-- ARGV limit idle_cutoff (T score user)*        oldest first; score '' = end it in any case, whoever it is: a logout;
--                                            user: whose it was, should the login be gone already
-- returns {sessions ended, carts recorded}
local recent, login, abandoned = KEYS[1], KEYS[2], KEYS[3]
local limit, idle_cutoff = tonumber(ARGV[1]), tonumber(ARGV[2])

-- Nothing that other code may have put there (another type, a quantity that is no number) may keep a session from ending.
local function cart_lines(cart)
  local items, lines = redis.pcall('HGETALL', cart), {}
  for n = 1, #items, 2 do
    if #items[n + 1] < 10 and items[n + 1]:find('^%d+$') then lines[items[n]] = tonumber(items[n + 1]) end
  end
  return lines
end

local tokens = {}
for i = 3, #ARGV, 3 do tokens[#tokens + 1] = ARGV[i] end
local scores = redis.call('ZMSCORE', recent, unpack(tokens))
local users = redis.call('HMGET', login, unpack(tokens))
local over = redis.call('ZCARD', recent) - limit

local gone, data, carts = {}, {}, 0
for i, token in ipairs(tokens) do
  local read_score, read_user = ARGV[i * 3 + 1], ARGV[i * 3 + 2]
  local score, user = scores[i], users[i]
  local unchanged = score and tonumber(score) == tonumber(read_score)
  if read_score == '' or (unchanged and (over > 0 or tonumber(score) < idle_cutoff)) then
    local viewed, cart, sessions, devices = unpack(KEYS, i * 4, i * 4 + 3)
    local lines = cart_lines(cart)
    if next(lines) then
      local entry = {'user', user or read_user, 'seen', score or '', 'items', cjson.encode(lines)}
      redis.call('XADD', abandoned, 'MAXLEN', '~', 10000, '*', unpack(entry))
      carts = carts + 1
    end
    if read_user ~= '' and (user or read_user) == read_user then
      redis.pcall('ZREM', sessions, token)
      redis.pcall('HDEL', devices, token)
    end
    if score then over = over - 1 end
    if score or user then gone[#gone + 1] = token end
    data[#data + 1] = viewed
    data[#data + 1] = cart
  end
end
-- Together, because every call within a script is billed.
if #data > 0 then redis.call('DEL', unpack(data)) end
if #gone > 0 then
  redis.call('ZREM', recent, unpack(gone))
  redis.call('HDEL', login, unpack(gone))
end
return {#gone, carts}
