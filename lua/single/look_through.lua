-- look_through: one page of SCAN over the hashes, without the hashes that cannot be locks by their shape. A plain lock is {owner:
-- count}; a read-write lock has a field `mode`. Changes nothing. The script only filters: `inspect` decides. The scan is in the
-- script, so that an ordinary hash costs neither a request nor bytes. Needs no library.
--
--   ARGV     LookThrough of core/lock/calls.h; no KEYS, because in a cluster the hashes belong to several slots of the server
--   returns  the next cursor, then the hashes that may be locks, the hashes that this user may not read, and the holder records
local function is_candidate(key)
  if string.find(key, '^rlock:holder:') then
    return true
  elseif string.find(key, '^rlock:waiters') then
    return false
  end
  local size = redis.pcall('HLEN', key)
  if size == 1 then
    local fields = redis.pcall('HKEYS', key)
    return fields.err or fields[1] and string.find(fields[1], '^[%x-]+:%-?%d')
      and tonumber(redis.call('HGET', key, fields[1]))
  elseif type(size) == 'number' then
    local mode = size > 0 and redis.pcall('HGET', key, 'mode')
    return mode == 'read' or mode == 'write'
  end
  return true
end

local page = redis.pcall('SCAN', ARGV[@look_through.cursor@], 'MATCH', ARGV[@look_through.glob@], 'COUNT', ARGV[@look_through.count@], 'TYPE', 'hash')
if page.err then
  return {err = page.err .. ' (SCAN)'}
end
local found = {page[1]}
for _, key in ipairs(page[2]) do
  if is_candidate(key) then
    found[#found + 1] = key
  end
end
return found
