#!lua flags=allow-key-locking
-- Deletes stored pages and takes them out of the account of page sizes.
-- KEYS pages: dying: bytes: (cache:H variants:H render:H)*
-- ARGV (H stored)*      stored: when the page was stored, as `pages:` said. A page that was stored again since stays.
--                       '' = delete the page and its render lease in any case
-- returns how many of the pages were in the account
local pages, dying, bytes = unpack(KEYS)

local hashes = {}
for i = 1, #ARGV, 2 do hashes[#hashes + 1] = ARGV[i] end
local stored, sizes = redis.call('ZMSCORE', pages, unpack(hashes)), redis.call('HMGET', bytes, unpack(hashes))

local keys, gone, freed = {}, {}, 0
for i, hash in ipairs(hashes) do
  local read = ARGV[i * 2]
  if read == '' or stored[i] and tonumber(stored[i]) == tonumber(read) then
    local page, variants, lease = unpack(KEYS, i * 3 + 1, i * 3 + 3)
    keys[#keys + 1] = page
    keys[#keys + 1] = variants
    if read == '' then keys[#keys + 1] = lease end
    if stored[i] or sizes[i] then
      gone[#gone + 1] = hash
      freed = freed + (tonumber(sizes[i]) or 0)
    end
  end
end
-- One call for all pages, because Upstash bills every call within a script.
if #keys > 0 then redis.call('DEL', unpack(keys)) end
if #gone > 0 then
  redis.call('ZREM', pages, unpack(gone))
  redis.call('ZREM', dying, unpack(gone))
  redis.call('HDEL', bytes, unpack(gone))
  if freed > 0 then redis.call('HINCRBY', bytes, 'total', -freed) end
end
return #gone
