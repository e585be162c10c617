-- rw: readers together, writers alone, as Redisson's RReadWriteLock.
--
--   the lock       hash {mode: read | write, READER: holds, WRITER:write: holds}, with no other field ever
--   timeouts       string {KEY}:READER:rwlock_timeout:I for each hold of a reader, with its ttl: who was killed is
--                  not counted any more once it is gone, however long the others keep the hash alive
--   the channel    0 after the last reader, 1 after a writer
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

local function holders()
  local found = {}
  local many = redis.pcall('HLEN', LOCK)
  local fields = type(many) == 'number' and many <= MANY and redis.call('HGETALL', LOCK) or {}
  for i = 1, #fields, 2 do
    local writer = string.match(fields[i], '^(.*):write$')
    local owner = writer or fields[i]
    if writer or (fields[i] ~= 'mode' and reads(owner)) then
      found[#found + 1] = owner
      found[#found + 1] = tonumber(fields[i + 1])
      found[#found + 1] = writer and 'write' or 'read'
    end
  end
  return found
end

local function admits(wish)
  return wish == 'read' and redis.pcall('HGET', LOCK, 'mode') == 'read' or redis.call('EXISTS', LOCK) == 0
end

local function at_least(key, ttl)
  if redis.call('PTTL', key) < tonumber(ttl) then
    redis.call('PEXPIRE', key, ttl)
    return true
  end
end

local function read_once_more(owner, ttl)
  local held = redis.call('HINCRBY', LOCK, owner, 1)
  redis.call('SET', timeout_of(owner, held), '1', 'PX', ttl)
  at_least(LOCK, ttl)
end

local function enter(owner, ttl, wish)
  if wish == 'write' then
    redis.call('HSET', LOCK, 'mode', 'write', owner .. ':write', 1)
    redis.call('PEXPIRE', LOCK, ttl)
    return
  end
  redis.call('HSETNX', LOCK, 'mode', 'read')
  read_once_more(owner, ttl)
end

local function nest(owner)
  if WISH == 'write' then
    redis.call('HINCRBY', LOCK, owner .. ':write', 1)
  else
    read_once_more(owner, redis.call('PTTL', LOCK))
  end
  return holds(owner)
end

local function no_nesting(owner)
  return WISH == 'write' and not writes(owner) and 'read lock of our own, which cannot become a write lock' or nil
end

local function disagreement() end

local function expire(owner, ttl)
  for hold = 1, reads(owner) or 0 do
    redis.call('PEXPIRE', timeout_of(owner, hold), ttl)
  end
  if redis.call('HLEN', LOCK) == 2 then
    redis.call('PEXPIRE', LOCK, ttl)  -- nobody else holds it
  end
end

local function extend(owner, ttl)
  local extended = at_least(LOCK, ttl)
  for hold = 1, reads(owner) or 0 do
    extended = at_least(timeout_of(owner, hold), ttl) or extended
  end
  return extended
end

-- ms that the longest living reader has left
local function longest_read()
  local longest = 0
  local fields = redis.call('HGETALL', LOCK)
  for i = 1, #fields, 2 do
    for hold = 1, tonumber(fields[i + 1]) or 0 do
      longest = math.max(longest, redis.call('PTTL', timeout_of(fields[i], hold)))
    end
  end
  return longest
end

-- After a reader or a writer has left: who else is there?
local function settle(said)
  local longest = longest_read()
  if longest > 0 then
    redis.call('PEXPIRE', LOCK, longest)
  elseif redis.call('HGET', LOCK, 'mode') ~= 'write' then
    redis.call('DEL', LOCK)
    word = said
  end
end

local function leave_reading(owner)
  local left = redis.call('HINCRBY', LOCK, owner, -1)
  redis.call('DEL', timeout_of(owner, left + 1))
  if left <= 0 then
    redis.call('HDEL', LOCK, owner)
  end
  settle('0')
end

local function leave_writing(owner)
  if redis.call('HINCRBY', LOCK, owner .. ':write', -1) > 0 then
    return
  end
  redis.call('HDEL', LOCK, owner .. ':write')
  redis.call('HSET', LOCK, 'mode', 'read')
  settle('1')
  word = '1'  -- also when it goes on reading: other readers may come in
end

local function leave(owner)
  local reading = reads(owner)
  if writes(owner) and (WISH == 'write' or not reading) then
    leave_writing(owner)
  else
    leave_reading(owner)
  end
  return holds(owner) or 0
end

local function remove(owner)
  while holds(owner) do
    leave(owner)
  end
end

local function next_change()
  return redis.call('PTTL', LOCK)
end

local function say_free()
  if word then
    redis.call('PUBLISH', CHANNEL, word)
  end
end

local NEEDED = {
  {'hget', LOCK, 'f'}, {'hlen', LOCK}, {'hgetall', LOCK}, {'hset', LOCK, 'f', 'v'}, {'hincrby', LOCK, 'f', '1'},
  {'hdel', LOCK, 'f'}, {'pexpire', LOCK, '1'}, {'del', LOCK}, {'publish', CHANNEL, '0'},
  {'set', timeout_of(OWNER, 1), '1'}, {'pexpire', timeout_of(OWNER, 1), '1'}, {'del', timeout_of(OWNER, 1)},
}
