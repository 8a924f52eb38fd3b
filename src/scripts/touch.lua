#!lua flags=allow-key-locking
-- Notes that a session was seen, and which item it looked at.
-- KEYS login: recent: viewed:T viewed:
-- ARGV T now idle_cutoff item window view       item '' = none; view 'reported' = counts only if the item ranks already
-- returns the user ('' = guest); nil = no such session, and nothing was written
local login, recent, viewed, ranking = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, now, idle_cutoff, item, window, view = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local user = redis.call('HGET', login, token)
local seen = redis.call('ZSCORE', recent, token)
if not user or not seen or tonumber(seen) < tonumber(idle_cutoff) then return false end

-- GT: a request that was slow, or an isolate whose clock is behind, moves nothing back.
redis.call('ZADD', recent, 'GT', now, token)
if item ~= '' then
  local last = redis.call('ZSCORE', viewed, item)
  redis.call('ZADD', viewed, 'GT', now, item)
  redis.call('ZREMRANGEBYRANK', viewed, 0, -26)
  if not last or now - last >= tonumber(window) then
    if view == 'reported' then
      redis.call('ZADD', ranking, 'XX', 'INCR', -1, item)
    else
      redis.call('ZINCRBY', ranking, -1, item)
    end
  end
end
return user
