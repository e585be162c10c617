-- permits: a limited number of holders at a time, as Redisson's RPermitExpirableSemaphore.
--
--   the lock        string: number of free permits
--   its second key  sorted set {permit: when it expires, in ms}; a permit is the 16 bytes of its owner's uuid, so
--                   that Java can name it
--   the channel     the number of free permits
--
-- Neither key has a ttl, because the two keys are the semaphore. A number that expired under living permits, or permits
-- without their number, would admit too many holders, and a JVM does not extend a ttl that rlock set. A killed holder
-- leaves its member. The member counts for nothing after its expiry, and the next request removes it.
--
-- The script writes the number with SET alone, which a holder needs anyway: where the rights cannot be checked (Redis 6),
-- no operation stops half way. If another program has put something else at the key, the holders have lost their
-- permits, and the script leaves that value.
local NAME, MULTI_HOLDER, NEEDS_NO_KEY = 'permits', true, false
local OTHER_QUEUE = QUEUE
local MAX_LISTED = 64

local freed = false  -- whether there are more free permits than before

local function now_ms()
  local now = now_us()  -- inline
  return math.floor(now / 1000)
end

local known_owner, known_permit, known_hex  -- of the last call of permit_of

-- The permit of an owner, and if it has the bytes of the owner's uuid, their digits. Redisson before 3.17 writes the 32 digits instead
-- of 16 bytes.
local function permit_of(owner)
  if owner == known_owner then
    return known_permit, known_hex
  end
  if #owner == 32 and tonumber(redis.pcall('ZSCORE', SECOND, owner)) then
    return owner
  end
  local hex = string.gsub(string.sub(owner, 1, 36), '-', '')
  if #hex ~= 32 or string.find(hex, '%X') then
    return owner
  end
  local permit = ''
  for i = 1, 25, 8 do
    local four = tonumber(string.sub(hex, i, i + 7), 16)
    permit = permit .. string.char(math.floor(four / 16777216), math.floor(four / 65536) % 256, math.floor(four / 256) % 256,
        four % 256)
  end
  if #owner ~= 32 then
    known_owner, known_permit, known_hex = owner, permit, string.lower(hex)
  end
  return permit, string.lower(hex)
end

local function permit_text(permit)
  return #permit == 16 and
      (string.gsub(permit, '.', function(byte) return string.format('%02x', string.byte(byte)) end)) or permit
end

-- The field of the holder record that names the owner of a permit. `hex`: its digits, if they are known.
local function permit_field(permit, hex)
  return 'permit:' .. (hex or permit_text(permit))
end

local function expiry_of(owner)
  local permit = permit_of(owner)  -- inline
  local score = tonumber(redis.pcall('ZSCORE', SECOND, permit))
  local now = now_ms()  -- inline
  return score and score > now and score or nil
end

-- 0: the request does not say how many permits there are.
local function requested_limit(requested)
  return tonumber(requested) or 0
end

-- As many permits as OWNER asked for when it got its own, by the event log; nil: the log does not tell.
local function logged_limit()
  local limit
  for _, entry in ipairs(redis.pcall('LRANGE', EVENTS, 0, -1)) do
    if entry_has(entry, '@kind.acquired@', OWNER) or entry_has(entry, '@word.to@', OWNER) then
      limit = tonumber(string.match(entry, '%z@word.wish@%z(%d+)'))
    end
  end
  return limit
end

-- Whether the key has the number of this semaphore, or was deleted. Permits without their number stay with their holders. A number
-- that rlock did not write last is that of a JVM if all permits are as many as the owner asked for, else that of another program.
local function is_number_or_missing()
  local number = redis.pcall('GET', LOCK)
  local limit = requested_limit(REQUESTED_MODE)  -- inline
  local is_number = type(number) == 'string' and string.find(number, '^%-?%d+$')
  local permits = is_number and number + redis.call('ZCARD', SECOND)
  return not number or is_number and (permits == limit or number == redis.pcall('GET', OWN_NUMBER)
      or limit == 0 and permits == (logged_limit() or permits))
end

local function holds(owner)
  local expiry = expiry_of(owner)  -- inline
  if not expiry then
    return nil
  end
  local is_semaphore = is_number_or_missing()  -- inline
  if not is_semaphore then
    lost_content = 'number that another program wrote'
    return nil
  end
  return hold_count(owner)  -- inline
end

-- Lists an owner that has a record by its name, and another owner by its permit.
local function holders()
  local found = {}
  for _, permit in ipairs(redis.call('ZRANGEBYSCORE', SECOND, '(' .. now_ms(), '+inf', 'LIMIT', 0, MAX_LISTED)) do
    local owner = redis.call('HGET', HOLDER, permit_field(permit)) or permit_text(permit)
    found[#found + 1] = owner
    found[#found + 1] = hold_count(owner)
    found[#found + 1] = ''
  end
  return found
end

local function live_permits()
  local now = now_ms()  -- inline
  return redis.call('ZCOUNT', SECOND, '(' .. now, '+inf')
end

local function free_permits(limit)
  return tonumber(redis.call('GET', LOCK)) or limit - redis.call('ZCARD', SECOND)
end

local function set_free_permits(number)
  local text = string.format('%.0f', number)
  redis.call('SET', OWN_NUMBER, text, 'PX', '@default.fence_memory@')
  redis.call('SET', LOCK, text, 'KEEPTTL')
end

local function capacity()
  local most = free_permits(0) + redis.call('ZCARD', SECOND)
  return most, live_permits()
end

-- Takes back expired permits.
local function purge_expired()
  local now = now_ms()  -- inline
  local until_now = string.format('%.0f', now)
  if redis.call('ZCOUNT', SECOND, '-inf', until_now) == 0 then
    return
  end
  local gone = redis.call('ZREMRANGEBYSCORE', SECOND, '-inf', until_now)
  if redis.call('EXISTS', LOCK) == 1 then
    local free = free_permits(0)  -- inline
    set_free_permits(free + gone)  -- inline
  end
  freed = true
end

-- The reply to a request that gives another number of permits. If no permit is held, and rlock wrote the number at the key, the
-- request sets the number instead. A number that rlock did not write may belong to another program.
local function mismatch(requested)
  local limit = requested_limit(requested)  -- inline
  local free = free_permits(limit)  -- inline
  local permits = free + redis.call('ZCARD', SECOND)
  if limit == 0 or limit == permits then
    return nil
  end
  local live = live_permits()  -- inline
  local are_held = live > 0
  if are_held or redis.call('GET', OWN_NUMBER) ~= redis.call('GET', LOCK) then
    return {'differs', permits, limit, are_held and 1 or 0}
  end
  set_free_permits(limit)  -- inline
  redis.call('DEL', SECOND)
end

-- kind_at_key() finds permits in nothing but a string.
local function admits(requested)
  local type = redis.call('TYPE', LOCK).ok
  if type == 'string' then
    local kind = kind_of_string(NAME)  -- inline
    if kind ~= NAME then
      return false
    end
    local answer = mismatch(requested)  -- inline
    if answer then
      return false
    end
  elseif type ~= 'none' then
    return false
  end
  purge_expired()  -- inline
  local limit = requested_limit(requested)  -- inline
  local free = free_permits(limit)  -- inline
  return free > 0
end

local function has_no_holder()
  local live = live_permits()  -- inline
  return live == 0
end

local function set_ttl(owner, ttl)
  local now = now_ms()  -- inline
  local permit = permit_of(owner)  -- inline
  redis.call('ZADD', SECOND, string.format('%.0f', now + tonumber(ttl)), permit)
end

-- Writes OWN_NUMBER first: a write that the server refuses fails before a permit is given away.
local function add_holder(owner, ttl, requested)
  local limit = requested_limit(requested)  -- inline
  local free = free_permits(limit)  -- inline
  local number = string.format('%.0f', free - 1)
  redis.call('SET', OWN_NUMBER, number, 'PX', '@default.fence_memory@')
  local permit, hex = permit_of(owner)  -- inline
  local field = permit_field(permit, hex)  -- inline
  redis.call('HSET', HOLDER, field, owner)
  set_ttl(owner, ttl)  -- inline
  redis.call('SET', LOCK, number, 'KEEPTTL')
end

local function add_hold(owner)
  return change_hold_count(owner, 1)
end

local function reentry_obstacle() end

-- PEXPIRE comes first: a full memory refuses ZADD, but not after a write that it allows.
local function extend(owner, ttl)
  local expiry = expiry_of(owner)  -- inline
  local now = now_ms()  -- inline
  local left = expiry - now
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', HOLDER, math.max(redis.call('PTTL', HOLDER), tonumber(ttl)))
    set_ttl(owner, ttl)  -- inline
    return left
  end
end

local function remove_holder(owner)
  local permit, hex = permit_of(owner)  -- inline
  local field = permit_field(permit, hex)  -- inline
  redis.call('HDEL', HOLDER, field)
  if redis.call('ZREM', SECOND, permit) == 1 then
    local number = tonumber(redis.call('GET', LOCK))
    if number then
      number = number + 1
    else
      local limit = requested_limit(REQUESTED_MODE)  -- inline
      local free = free_permits(limit)  -- inline
      number = math.max(1, free)
    end
    set_free_permits(number)  -- inline
    freed = true
  end
end

local function remove_hold(owner)
  local count = hold_count(owner)  -- inline
  if count > 1 then
    return change_hold_count(owner, -1)  -- inline
  end
  remove_holder(owner)  -- inline
  return 0
end

local function is_redisson_hold(permit)
  return #permit == 32 and not string.find(permit, '%X')
end

local function next_expiry_ms()
  local first = redis.call('ZRANGEBYSCORE', SECOND, '(' .. now_ms(), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return first and math.max(0, tonumber(first) - now_ms()) or -1
end

local function remaining_ms(owner)
  return expiry_of(owner) - now_ms()
end

local function announce_free()
  if not freed then
    return
  end
  local number = free_permits(0)  -- inline
  if number > 0 then
    publish_to_foreign(number)  -- inline
  end
end

local function missing_kind_right(no)
  return no('set', LOCK, '1', 'keepttl') or no('set', OWN_NUMBER, '1') or no('exists', SECOND) or no('zscore', SECOND, 'm')
      or no('zadd', SECOND, '1', 'm') or no('zrem', SECOND, 'm') or no('zcard', SECOND)
      or no('zcount', SECOND, '0', '1') or no('zrangebyscore', SECOND, '0', '1') or no('zremrangebyscore', SECOND, '0', '1')
end
