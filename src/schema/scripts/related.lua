#!lua flags=allow-key-locking
-- Reads what is bought together with an item, and how often each of these items is bought at all. It writes nothing.
-- KEYS bought:I bought: rescaled:bought
-- ARGV I
-- returns {bought:I, rescaled:bought, items, their scores in bought: (nil = none)}, I before the others; nil = nothing is known
local text = redis.call('GET', KEYS[1])
local ok, counts = pcall(cjson.decode, text or '')
if not ok or type(counts) ~= 'table' or type(counts.items) ~= 'table' then return false end

local items = {ARGV[1]}
for item in pairs(counts.items) do items[#items + 1] = item end
return {text, redis.call('GET', KEYS[3]), items, redis.call('ZMSCORE', KEYS[2], unpack(items))}
