-- look_through: which of these hashes may be locks by their shape: {owner: count} as plain locks are, or with the mode
-- of a read-write lock. Cheap for each key, changes nothing. It only filters: `inspect` decides. Needs no library.
--
--   ARGV     names of hashes; no KEYS, because in a cluster they are of several slots of the server
--   returns  those that may be locks, and those that this user may not read
local function is_candidate(key)
  local size = redis.pcall('HLEN', key)
  if size == 1 then
    local field = redis.pcall('HGETALL', key)
    return field.err or field[1] and string.find(field[1], '^[%x-]+:%-?%d') and tonumber(field[2])
  elseif type(size) == 'number' then
    local mode = size > 0 and redis.pcall('HGET', key, 'mode')
    return mode == 'read' or mode == 'write'
  end
  return true
end

local found = {}
for i = 1, #ARGV do
  if is_candidate(ARGV[i]) then
    found[#found + 1] = ARGV[i]
  end
end
return found
