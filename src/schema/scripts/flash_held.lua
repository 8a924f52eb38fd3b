#!lua flags=allow-key-locking
-- Finds the piece of a flash sale that is held for a visitor.
-- The caller checks that the visitor's session is live.
-- KEYS flash:{sale} held:{sale} [login:]
-- ARGV who now      who: a token if there is login:, else a user
-- returns {id, until}; nil = no piece is held for them
local sale, held, login = unpack(KEYS)
local who, now = ARGV[1], tonumber(ARGV[2])

local user = login and (redis.call('HGET', login, who) or '') or who
if user == '' then return false end
local id, ends = redis.call('HGET', sale, 'hold:' .. user), redis.call('ZSCORE', held, user)
if not id or not ends or tonumber(ends) <= now then return false end
return {id, ends}
