-- rw: readers together, writers alone, as Redisson's RReadWriteLock.
--
--   the lock       hash {mode: read | write, READER: holds, WRITER:write: holds}, with no other field ever
--   timeouts       string {KEY}:READER:rwlock_timeout:I for each hold of a reader, with its ttl: after the ttl a killed
--                  reader does not count, however long other readers keep the hash alive
--   the channel    0 after the last reader, 1 and 0 after a writer
--
-- The script writes each timeout before its hold, and a write that the server may refuse before a write that counts: where
-- the rights cannot be checked (Redis 6), no hash stays without a ttl.
local NAME, MULTI_HOLDER, NEEDS_NO_KEY = 'read-write lock', true, true
local OTHER_QUEUE = 'rlock:queue' .. string.sub(QUEUE, #'rlock:queue-rw' + 1)
local MAX_LISTED = 64

local announcement  -- message for foreign clients

local function read_holds(owner)
  local held = tonumber(redis.pcall('HGET', LOCK, owner))
  if not held then
    return nil
  end
  local timeout = timeout_of(owner, held)  -- inline
  return redis.call('EXISTS', timeout) == 1 and held or nil
end

local function write_holds(owner)
  return tonumber(redis.pcall('HGET', LOCK, owner .. ':write'))
end

local function holds(owner)
  local writing = write_holds(owner)  -- inline
  local reading = read_holds(owner)  -- inline
  return (writing or reading) and (writing or 0) + (reading or 0)
end

-- All fields of the hash, or a sample if there are many: field, value, field, …
local function sample_fields()
  local size = redis.pcall('HLEN', LOCK)
  if type(size) ~= 'number' then
    return {}
  elseif size <= MAX_LISTED then
    return redis.call('HGETALL', LOCK)
  end
  return redis.call('HSCAN', LOCK, '0', 'COUNT', MAX_LISTED)[2]
end

local function holders()
  local found, fields = {}, sample_fields()
  for i = 1, math.min(#fields, 2 * MAX_LISTED), 2 do
    local writer = string.match(fields[i], '^(.*):write$')
    local owner = writer or fields[i]
    local held = owner ~= 'mode' and (writer or not write_holds(owner)) and holds(owner)
    if held then
      found[#found + 1] = owner
      found[#found + 1] = held
      found[#found + 1] = writer and 'write' or 'read'
    end
  end
  return found
end

local function capacity(found)
  local size = redis.pcall('HLEN', LOCK)
  return 0, type(size) == 'number' and size > MAX_LISTED and size - 1 or #found / 3
end

local function admits(requested)
  return requested == 'read' and redis.pcall('HGET', LOCK, 'mode') == 'read' and is_read_write_lock('read')
      or redis.call('EXISTS', LOCK) == 0
end

local function has_no_holder()
  return redis.call('EXISTS', LOCK) == 0
end

-- Removes killed readers, which stay in the hash while other readers keep the hash alive.
local function drop_dead_readers()
  for _, field in ipairs(redis.call('HKEYS', LOCK)) do
    if field ~= 'mode' and not string.find(field, ':write$') then
      local reading = read_holds(field)  -- inline
      if not reading then
        redis.call('HDEL', LOCK, field)
      end
    end
  end
end

local function add_holder(owner, ttl, requested)
  if requested == 'write' then
    redis.call('HSET', LOCK, 'mode', 'write', owner .. ':write', '1')
    redis.call('PEXPIRE', LOCK, ttl)
    return
  end
  local readers = redis.call('HLEN', LOCK)
  if readers > MAX_LISTED then
    local due = is_cleanup_due(readers)  -- inline
    if due then
      drop_dead_readers()  -- inline
    end
  end
  local timeout = timeout_of(owner, '1')  -- inline
  redis.call('SET', timeout, '1', 'PX', ttl)
  redis.call('HSET', LOCK, 'mode', 'read', owner, '1')
  extend_key(LOCK, ttl)  -- inline
end

-- A further read lasts as long as the present hold of the owner; the acquire script then extends both.
local function add_hold(owner)
  if REQUESTED_MODE == 'write' then
    redis.call('HINCRBY', LOCK, owner .. ':write', '1')
    return holds(owner)
  end
  local reading = read_holds(owner)
  local remaining_ms = redis.call('PTTL', reading and timeout_of(owner, reading) or LOCK)
  local hold = (reading or 0) + 1
  redis.call('SET', timeout_of(owner, hold), '1', 'PX', math.max(1, remaining_ms))
  redis.call('HSET', LOCK, owner, hold)
  return holds(owner)
end

local function reentry_obstacle(owner)
  local would_upgrade = REQUESTED_MODE == 'write' and not write_holds(owner)
  return would_upgrade and 'read lock of the same owner, which cannot become a write lock' or nil
end

local function mismatch() end

-- The longest ttl of a living reader, in ms; math.huge: the hold of a reader has lost its ttl (PERSIST).
local function longest_read()
  local longest = 0
  local fields = redis.call('HGETALL', LOCK)
  for i = 1, #fields, 2 do
    for hold = 1, tonumber(fields[i + 1]) or 0 do
      local timeout = timeout_of(fields[i], hold)  -- inline
      local left = redis.call('PTTL', timeout)
      longest = left == -1 and math.huge or math.max(longest, left)
    end
  end
  return longest
end

-- Gives the lock the ttl of its longest reader. False: no reader is left.
local function last_as_long_as_readers()
  local longest = longest_read()  -- inline
  if longest > 0 and longest < math.huge then
    redis.call('PEXPIRE', LOCK, longest)
  end
  return longest > 0
end

local function set_ttl(owner, ttl)
  for hold = 1, read_holds(owner) or 0 do
    redis.call('PEXPIRE', timeout_of(owner, hold), ttl)
  end
  if write_holds(owner) then
    redis.call('PEXPIRE', LOCK, ttl)
  else
    last_as_long_as_readers()
  end
end

local function extend(owner, ttl)
  local extended = extend_key(LOCK, ttl)  -- inline
  local reading = read_holds(owner)  -- inline
  for hold = 1, reading or 0 do
    local timeout = timeout_of(owner, hold)  -- inline
    local left = extend_key(timeout, ttl)  -- inline
    extended = left or extended
  end
  return extended
end

-- Call this after a reader or a writer has gone. A writer that stops reading keeps its write hold.
local function delete_if_unused(message)
  if redis.call('HGET', LOCK, 'mode') == 'write' then
    return
  end
  local has_reader = last_as_long_as_readers()  -- inline
  if not has_reader then
    redis.call('DEL', LOCK)
    announcement = message
  end
end

local function remove_read_hold(owner, held)
  local timeout = timeout_of(owner, held)  -- inline
  redis.call('DEL', timeout)
  if held > 1 then
    redis.call('HINCRBY', LOCK, owner, '-1')
  else
    redis.call('HDEL', LOCK, owner)
  end
  delete_if_unused('0')  -- inline
end

-- If the owner goes on reading, the lock may admit readers that the writer kept out.
local function remove_writer(owner)
  if redis.call('HLEN', LOCK) == 2 then  -- the mode and the writer
    redis.call('DEL', LOCK)
  else
    redis.call('HDEL', LOCK, owner .. ':write')
    redis.call('HSET', LOCK, 'mode', 'read')
    delete_if_unused('1')  -- inline
  end
  announcement = '1'
end

local function remove_hold(owner)
  local writing = write_holds(owner)  -- inline
  local reading = read_holds(owner)  -- inline
  if not writing or reading and REQUESTED_MODE ~= 'write' then
    remove_read_hold(owner, reading)  -- inline
  elseif writing > 1 then
    redis.call('HINCRBY', LOCK, owner .. ':write', '-1')
  else
    remove_writer(owner)  -- inline
  end
  if (writing or 0) + (reading or 0) == 1 then
    return 0
  end
  return holds(owner) or 0
end

local function remove_holder(owner)
  for hold = 1, read_holds(owner) or 0 do
    redis.call('DEL', timeout_of(owner, hold))
  end
  redis.call('HDEL', LOCK, owner)
  if write_holds(owner) then
    remove_writer(owner)
  else
    delete_if_unused('0')
  end
end

-- True, because holders() lists an owner only beside `mode`, and a reader only with its timeout.
local function is_redisson_hold()
  return true
end

local function next_expiry_ms()
  return redis.call('PTTL', LOCK)
end

local function remaining_ms(owner)
  return redis.call('PTTL', write_holds(owner) and LOCK or timeout_of(owner, read_holds(owner)))
end

-- While a writer holds the lock, no other client can get it. A 1 wakes all threads of a JVM that sleep already, but does not
-- reach a thread that was just refused and does not sleep yet: that thread would sleep for the whole ttl. A 0 reaches such a
-- thread.
local function announce_free()
  if announcement and redis.call('HGET', LOCK, 'mode') ~= 'write' then
    publish_to_foreign(announcement)  -- inline
    if announcement ~= '0' then
      publish_to_foreign('0')  -- inline
    end
  end
end

local function missing_kind_right(no)
  return no('hgetall', LOCK) or no('hkeys', LOCK) or no('hscan', LOCK, '0') or no('hincrby', LOCK, 'f', '1')
      or no('set', timeout_of(OWNER, 1), '1')
end
