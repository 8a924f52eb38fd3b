#!lua flags=allow-key-locking
-- Counts a visit of a page, and of the site.
-- KEYS page site | ARGV increment

local page = redis.call('INCRBY', KEYS[1], ARGV[1])
local site = redis.call('INCRBY', KEYS[2], ARGV[1])
if page > site then
  -- Another program has changed the numbers.
  return redis.error_reply('ERR more visits of a page than of the site')
end
return {page, site}
