#!lua flags=allow-key-locking
-- The piece of a flash sale that is held for a visitor; whether their session lives is for the caller to know.
-- KEYS login: flash:{sale} held:{sale}
-- ARGV T now
-- returns {id, until}; nil = nothing is held for them
local login, sale, held = KEYS[1], KEYS[2], KEYS[3]
local token, now = ARGV[1], tonumber(ARGV[2])

local user = redis.call('HGET', login, token)
if not user or user == '' then return false end
local id, ends = redis.call('HGET', sale, 'hold:' .. user), redis.call('ZSCORE', held, user)
if not id or not ends or tonumber(ends) <= now then return false end
return {id, ends}
