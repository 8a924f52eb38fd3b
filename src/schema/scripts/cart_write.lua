#!lua flags=allow-key-locking
-- Changes a cart, and creates a guest's session if there is no live session.
-- KEYS login: recent: cart:T cart:F [once:H]
-- ARGV T F now idle_cutoff operation item quantity max_lines max_quantity [once_ttl]
--      T: the visitor's token; F: a fresh token for a guest
--      operation: set (0 removes), add or clear; once_ttl in seconds
-- returns {outcome, user, cart as a flat list}; nil = there is no session, and nothing to change
--      outcome: kept = the session is T's; created = it is F's; full, reused = nothing was written
local login, recent, once = KEYS[1], KEYS[2], KEYS[5]
local token, fresh, now, idle_cutoff = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local operation, item, quantity = ARGV[5], ARGV[6], tonumber(ARGV[7])
local max_lines, max_quantity, once_ttl = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]

local user = redis.call('HGET', login, token)
local seen = user and redis.call('ZSCORE', recent, token)
local lives = seen and tonumber(seen) >= idle_cutoff
local puts = operation ~= 'clear' and quantity > 0
if not lives and not puts then return false end

local cart = lives and KEYS[3] or KEYS[4]
local function answer(outcome)
  return {outcome, lives and user or '', redis.call('HGETALL', cart)}
end

-- An idempotency key belongs to a session. Without a session, each attempt fills its own cart, and the last one counts.
local asked = operation .. ' ' .. item .. ' ' .. ARGV[7]
if lives and once then
  local before = redis.call('GET', once)
  if before then return answer(before == asked and 'kept' or 'reused') end
end

if puts then
  local there = redis.call('HGET', cart, item)
  if not there and redis.call('HLEN', cart) >= max_lines then return answer('full') end
  if operation == 'add' then quantity = math.min(max_quantity, (tonumber(there) or 0) + quantity) end
  redis.call('HSET', cart, item, quantity)
elseif operation == 'clear' then
  redis.call('DEL', cart)
else
  redis.call('HDEL', cart, item)
end

if not lives then
  redis.call('HSET', login, fresh, '')
  redis.call('ZADD', recent, now, fresh)
  return answer('created')
end
redis.call('ZADD', recent, 'GT', now, token)
if once then redis.call('SET', once, asked, 'EX', once_ttl) end
return answer('kept')
