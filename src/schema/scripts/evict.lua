#!lua flags=allow-key-locking
-- Deletes stored pages and takes them out of the account of page sizes.
-- KEYS stored: (cache:H variants:H render:H)*
-- ARGV (H stored)*     stored: when the page was stored, as `account` returned it. A page that was stored again since
--                      stays. '' = delete the page in any case
-- The lease is deleted, too: `store` may leave it in place, because the stored page ends it by naming it. Without the page,
-- it would block renders until it expires.
-- returns how many of the pages were in the account
local stored = KEYS[1]

local asked = {''}
for i = 1, #ARGV, 2 do
  asked[#asked + 1] = ARGV[i]
  asked[#asked + 1] = '~' .. ARGV[i]
end
local scores = redis.call('ZMSCORE', stored, unpack(asked))
local total, keys, gone = tonumber(scores[1]) or 0, {}, {}
for i = 2, #asked, 2 do
  local read, at, size = ARGV[i], scores[i], scores[i + 1]
  if read == '' or at and tonumber(at) == tonumber(read) then
    local page, variants, lease = unpack(KEYS, i * 1.5 - 1, i * 1.5 + 1)
    keys[#keys + 1] = page
    keys[#keys + 1] = variants
    keys[#keys + 1] = lease
    if at or size then
      gone[#gone + 1] = asked[i]
      gone[#gone + 1] = asked[i + 1]
      total = total - (size and (size + 2 ^ 53) % 2 ^ 22 or 0)
    end
  end
end
-- One call for all pages, because Upstash bills every call within a script.
if #keys > 0 then redis.call('DEL', unpack(keys)) end
if #gone > 0 then
  redis.call('ZREM', stored, unpack(gone))
  redis.call('ZADD', stored, string.format('%.0f', total), '')
end
return #gone / 2
