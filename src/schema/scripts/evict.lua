#!lua flags=allow-key-locking
-- Deletes stored pages, and takes them out of the account of what all pages together take.
-- KEYS pages: dying: bytes: (cache:H variants:H render:H)*
-- ARGV (H stored)*      stored: when `pages:` said that it was stored; a page that has been stored again since is spared.
--                       '' = in any case, and whoever renders it finds the lease gone
-- Returns how many pages were in the account
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
-- Together, because every call within a script is billed.
if #keys > 0 then redis.call('DEL', unpack(keys)) end
if #gone > 0 then
  redis.call('ZREM', pages, unpack(gone))
  redis.call('ZREM', dying, unpack(gone))
  redis.call('HDEL', bytes, unpack(gone))
  if freed > 0 then redis.call('HINCRBY', bytes, 'total', -freed) end
end
return #gone
