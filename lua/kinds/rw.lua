-- rw: readers together, writers alone, as Redisson's RReadWriteLock.
--
--   the lock       hash {mode: read | write, READER: holds, WRITER:write: holds}, with no other field ever
--   timeouts       string {KEY}:READER:rwlock_timeout:I for each hold of a reader, with its ttl: who was killed is
--                  not counted any more once it is gone, however long the others keep the hash alive
--   the channel    0 after the last reader, 1 after a writer
--
-- Each timeout is written before the hold it stands for, and what could be refused before what counts: where the server
-- cannot be asked for rights (Redis 6) no hash is left without a ttl.
local NAME, SHARES = 'read-write lock', true
local TIMEOUTS = string.sub(SECOND, 1, -string.len('timeout') - 1)
local MANY = 64

local word  -- what foreign clients are to be told

local function timeout_of(owner, hold)
  return TIMEOUTS .. owner .. ':rwlock_timeout:' .. hold
end

local function reads(owner)
  local held = tonumber(redis.pcall('HGET', LOCK, owner))
  return held and redis.call('EXISTS', timeout_of(owner, held)) == 1 and held or nil
end

local function writes(owner)
  return tonumber(redis.pcall('HGET', LOCK, owner .. ':write'))
end

local function holds(owner)
  local writing, reading = writes(owner), reads(owner)
  return (writing or reading) and (writing or 0) + (reading or 0)
end

-- All that is in the hash, or something of it when there is much: field, value, field, …
local function some_fields()
  local many = redis.pcall('HLEN', LOCK)
  if type(many) ~= 'number' then
    return {}
  elseif many <= MANY then
    return redis.call('HGETALL', LOCK)
  end
  return redis.call('HSCAN', LOCK, '0', 'COUNT', MANY)[2]
end

local function holders()
  local found, fields = {}, some_fields()
  for i = 1, math.min(#fields, 2 * MANY), 2 do
    local writer = string.match(fields[i], '^(.*):write$')
    local owner = writer or fields[i]
    local held = owner ~= 'mode' and (writer or not writes(owner)) and holds(owner)
    if held then
      found[#found + 1] = owner
      found[#found + 1] = held
      found[#found + 1] = writer and 'write' or 'read'
    end
  end
  return found
end

local function room(found)
  local many = redis.pcall('HLEN', LOCK)
  return 0, type(many) == 'number' and many > MANY and many - 1 or #found / 3
end

local function admits(wish)
  return wish == 'read' and redis.pcall('HGET', LOCK, 'mode') == 'read' or redis.call('EXISTS', LOCK) == 0
end

local function no_holder()
  return redis.call('EXISTS', LOCK) == 0
end

-- Readers that were killed stay in the hash for as long as others keep it alive.
local function drop_dead_readers()
  for _, field in ipairs(redis.call('HKEYS', LOCK)) do
    if field ~= 'mode' and not string.find(field, ':write$') and not reads(field) then
      redis.call('HDEL', LOCK, field)
    end
  end
end

local function enter(owner, ttl, wish)
  if wish == 'write' then
    redis.call('HSET', LOCK, 'mode', 'write', owner .. ':write', 1)
    redis.call('PEXPIRE', LOCK, ttl)
    return
  end
  local readers = redis.call('HLEN', LOCK)
  if readers > MANY and now_and_then(readers) then
    drop_dead_readers()
  end
  redis.call('SET', timeout_of(owner, 1), '1', 'PX', ttl)
  redis.call('HSET', LOCK, 'mode', 'read', owner, 1)
  at_least(LOCK, ttl)
end

-- A further read is to last as long as what we hold already; acquiring pushes back both.
local function nest(owner)
  if WISH == 'write' then
    redis.call('HINCRBY', LOCK, owner .. ':write', 1)
    return holds(owner)
  end
  local reading = reads(owner)
  local lasts = redis.call('PTTL', reading and timeout_of(owner, reading) or LOCK)
  local hold = (reading or 0) + 1
  redis.call('SET', timeout_of(owner, hold), '1', 'PX', math.max(1, lasts))
  redis.call('HSET', LOCK, owner, hold)
  return holds(owner)
end

local function no_nesting(owner)
  return WISH == 'write' and not writes(owner) and 'read lock of our own, which cannot become a write lock' or nil
end

local function disagreement() end

-- ms that the longest living reader has left; math.huge when the hold of one of them has lost its ttl (PERSIST)
local function longest_read()
  local longest = 0
  local fields = redis.call('HGETALL', LOCK)
  for i = 1, #fields, 2 do
    for hold = 1, tonumber(fields[i + 1]) or 0 do
      local left = redis.call('PTTL', timeout_of(fields[i], hold))
      longest = left == -1 and math.huge or math.max(longest, left)
    end
  end
  return longest
end

-- The lock lasts as long as the longest of its readers. False when no reader is left.
local function last_as_readers()
  local longest = longest_read()
  if longest > 0 and longest < math.huge then
    redis.call('PEXPIRE', LOCK, longest)
  end
  return longest > 0
end

local function expire(owner, ttl)
  for hold = 1, reads(owner) or 0 do
    redis.call('PEXPIRE', timeout_of(owner, hold), ttl)
  end
  if writes(owner) then
    redis.call('PEXPIRE', LOCK, ttl)
  else
    last_as_readers()
  end
end

local function extend(owner, ttl)
  local extended = at_least(LOCK, ttl)
  for hold = 1, reads(owner) or 0 do
    extended = at_least(timeout_of(owner, hold), ttl) or extended
  end
  return extended
end

-- After a reader or a writer has left: who else is there? A writer that has left off reading keeps what it has.
local function settle(said)
  if redis.call('HGET', LOCK, 'mode') == 'write' then
    return
  end
  if not last_as_readers() then
    redis.call('DEL', LOCK)
    word = said
  end
end

local function leave_reading(owner, held)
  redis.call('DEL', timeout_of(owner, held))
  if held > 1 then
    redis.call('HINCRBY', LOCK, owner, -1)
  else
    redis.call('HDEL', LOCK, owner)
  end
  settle('0')
end

-- Those who were refused because of a writer may come in also when it goes on reading.
local function end_writing(owner)
  redis.call('HDEL', LOCK, owner .. ':write')
  redis.call('HSET', LOCK, 'mode', 'read')
  settle('1')
  word = '1'
end

local function leave(owner)
  local writing, reading = writes(owner), reads(owner)
  if not writing or reading and WISH ~= 'write' then
    leave_reading(owner, reading)
  elseif writing > 1 then
    redis.call('HINCRBY', LOCK, owner .. ':write', -1)
  else
    end_writing(owner)
  end
  return holds(owner) or 0
end

local function remove(owner)
  for hold = 1, reads(owner) or 0 do
    redis.call('DEL', timeout_of(owner, hold))
  end
  redis.call('HDEL', LOCK, owner)
  if writes(owner) then
    end_writing(owner)
  else
    settle('0')
  end
end

-- No owner is found without the mode, and a reader not without its timeout.
local function is_redissons()
  return true
end

local function next_change()
  return redis.call('PTTL', LOCK)
end

local function lasts(owner)
  return redis.call('PTTL', writes(owner) and LOCK or timeout_of(owner, reads(owner)))
end

-- While a writer is in, nobody else can come.
local function say_free()
  if word and redis.call('HGET', LOCK, 'mode') ~= 'write' then
    announce(word)
  end
end

local function refuses(no)
  return no('hgetall', LOCK) or no('hkeys', LOCK) or no('hscan', LOCK, '0') or no('hincrby', LOCK, 'f', '1')
      or no('set', timeout_of(OWNER, 1), '1')
end
