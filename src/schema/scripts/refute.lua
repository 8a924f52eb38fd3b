#!lua flags=allow-key-locking
-- Ends the hit-for-miss note of a page. A lease in its place stays.
-- KEYS render:H
-- ARGV none
-- returns 1; 0 = there is no note
local holder = redis.call('GET', KEYS[1])
if not holder or string.sub(holder, 1, 10) ~= 'unstorable' then return 0 end
return redis.call('DEL', KEYS[1])
