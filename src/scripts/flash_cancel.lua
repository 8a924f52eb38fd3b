#!lua flags=allow-key-locking
-- Gives a visitor's piece of a flash sale back, once.
-- KEYS login: recent: flash:{sale} held:{sale}
-- ARGV T idle_cutoff gone_by id        gone_by: a hold that ended by then is a piece again already
-- returns 'returned'; 'unknown' = that is no hold of theirs (any more); 'nobody' = no user's session
local login, recent, sale, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, idle_cutoff, gone_by, id = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local user = redis.call('HGET', login, token)
local seen = user and redis.call('ZSCORE', recent, token)
if not seen or user == '' or tonumber(seen) < idle_cutoff then return 'nobody' end

if redis.call('HGET', sale, 'hold:' .. user) ~= id then return 'unknown' end
local ends = redis.call('ZSCORE', held, user)
redis.call('HDEL', sale, 'hold:' .. user)
redis.call('ZREM', held, user)
return ends and tonumber(ends) > gone_by and 'returned' or 'unknown'
