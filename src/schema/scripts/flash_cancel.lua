#!lua flags=allow-key-locking
-- Gives a visitor's piece of a flash sale back, once.
-- KEYS flash:{sale} held:{sale} [login: [recent:]]
-- ARGV who idle_cutoff gone_by id      who: a token if there is login:, else a user, '' = no user
--                                      without recent:, the session is young: login: alone decides
--                                      gone_by: a hold that ended by then has given its piece back already
-- returns 'returned'; 'unknown' = this hold is not (or no longer) the visitor's; 'nobody' = no user is signed in
local sale, held, login, recent = unpack(KEYS)
local who, idle_cutoff, gone_by, id = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local user = who
if login then user = redis.call('HGET', login, who) or '' end
if recent and user ~= '' then
  local seen = redis.call('ZSCORE', recent, who)
  if not seen or tonumber(seen) < idle_cutoff then user = '' end
end
if user == '' then return 'nobody' end

local mine, upkeep = unpack(redis.call('HMGET', sale, 'hold:' .. user, 'upkeep'), 1, 2)
if mine ~= id then return 'unknown' end
local ends = redis.call('ZSCORE', held, user)
redis.call('HDEL', sale, 'hold:' .. user)
local is_gone = redis.call('ZREM', held, user) == 1
-- `upkeep` ends with the number of stored holds: see `flash`.
local rest, stored = string.match(upkeep or '', '^(.* )(%d+)$')
if is_gone and stored then redis.call('HSET', sale, 'upkeep', rest .. math.max(stored - 1, 0)) end
return ends and tonumber(ends) > gone_by and 'returned' or 'unknown'
