#!lua flags=allow-key-locking
-- Changes a cart, and creates a guest's session if there is no live session.
-- All operations take effect, or none.
-- KEYS login: recent: cart:T cart:F [once:L [once:H]]
-- ARGV T F now idle_cutoff max_lines max_quantity once_ttl touch_every began (operation item quantity)*
--      T: the visitor's token; F: a fresh token for a guest, '' = create no session
--      began: the start of a young session: login: alone decides, and its last activity is not read; '' = not young
--      operation: set (0 removes), add or clear; once_ttl and touch_every in seconds
--      once:L: the token that replaced T at a login: see `log_in`; once:H: the idempotency key
-- returns {outcome, user, cart as a flat list}; nil = there is no session, and nothing to change
--      outcome: kept = the session is T's; started = the same, and its cart was empty; created = the session is F's;
--               repeated = the idempotency key has taken effect before; full, reused, replaced = nothing was written
local login, recent, replaced, once = KEYS[1], KEYS[2], KEYS[5], KEYS[6]
local token, fresh, now, idle_cutoff = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local max_lines, max_quantity, once_ttl = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local touch_every, seen = tonumber(ARGV[8]), ARGV[9]

local user = redis.call('HGET', login, token)
if user and seen == '' then seen = redis.call('ZSCORE', recent, token) end
local lives = user and seen and tonumber(seen) >= idle_cutoff
local puts, asked = false, {}
for i = 10, #ARGV, 3 do
  puts = puts or ARGV[i] ~= 'clear' and tonumber(ARGV[i + 2]) > 0
  asked[#asked + 1] = ARGV[i] .. ' ' .. ARGV[i + 1] .. ' ' .. ARGV[i + 2]
end
if not lives then
  -- A login has just replaced T, and its cookie may not have arrived. A guest's cookie would overwrite it. After ten seconds
  -- without activity of the new session, the visitor counts as one who never got it.
  local follower = replaced and redis.call('GET', replaced)
  local active = follower and redis.call('ZSCORE', recent, follower:match('%S*'))
  if active and now - active < 10 then return {'replaced', '', {}} end
  if not puts or fresh == '' then return false end
end

local cart = lives and KEYS[3] or KEYS[4]
-- A token that was just drawn has no cart.
local before = lives and redis.pcall('HGETALL', cart) or {}
-- Another program may have stored another type.
if before.err then
  redis.call('DEL', cart)
  before = {}
end
local function answer(outcome, content)
  return {outcome, lives and user or '', content}
end

-- An idempotency key belongs to a session. Without a session, each attempt fills its own cart, and the last one counts.
asked = table.concat(asked, ',')
if lives and once then
  local first = redis.call('GET', once)
  if first then return answer(first == asked and 'repeated' or 'reused', before) end
end

-- The cart after the operations, and the items that they name since the last clear.
local lines, count, cleared, named = {}, #before / 2, false, {}
for i = 1, #before, 2 do lines[before[i]] = before[i + 1] end
for i = 10, #ARGV, 3 do
  local operation, item, quantity = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  if operation == 'clear' then
    lines, count, cleared, named = {}, 0, true, {}
  else
    local there = lines[item]
    if operation == 'add' then quantity = math.min(max_quantity, (tonumber(there) or 0) + quantity) end
    if quantity > 0 and not there then
      if count >= max_lines then return answer('full', before) end
      count = count + 1
    elseif quantity <= 0 and there then
      count = count - 1
    end
    lines[item] = quantity > 0 and string.format('%.0f', quantity) or nil
    named[item] = true
  end
end
if not lives and count == 0 then return false end

local written, removes = {}, {}
for item in pairs(named) do
  if lines[item] then
    written[#written + 1] = item
    written[#written + 1] = lines[item]
  else
    removes[#removes + 1] = item
  end
end
if cleared then redis.call('DEL', cart) elseif #removes > 0 then redis.call('HDEL', cart, unpack(removes)) end
if #written > 0 then redis.call('HSET', cart, unpack(written)) end
local after = {}
for item, quantity in pairs(lines) do
  after[#after + 1] = item
  after[#after + 1] = quantity
end

if not lives then
  redis.call('HSET', login, fresh, '')
  redis.call('ZADD', recent, now, fresh)
  return answer('created', after)
end
-- As `touch`: an activity is recorded once in this time.
if now - seen >= touch_every then redis.call('ZADD', recent, 'GT', now, token) end
if once then redis.call('SET', once, asked, 'EX', once_ttl) end
return answer(#before == 0 and 'started' or 'kept', after)
