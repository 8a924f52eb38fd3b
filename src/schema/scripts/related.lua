#!lua flags=allow-key-locking
-- Reads the items bought together with an item, and how often each of them is bought.
-- It only reads.
-- KEYS bought:I bought: rescaled:bought
-- ARGV I
-- returns {bought:I, rescaled:bought, items, their scores in bought: (nil = none)}, I first; nil = nothing is known
local text = redis.call('GET', KEYS[1])
local ok, counts = pcall(cjson.decode, text or '')
if not ok or type(counts) ~= 'table' or type(counts.items) ~= 'table' then return false end

local items = {ARGV[1]}
for item in pairs(counts.items) do items[#items + 1] = item end
return {text, redis.call('GET', KEYS[3]), items, redis.call('ZMSCORE', KEYS[2], unpack(items))}
