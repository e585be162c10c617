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
  return math.floor(now_us() / 1000)
end

-- Redisson before 3.17 writes the 32 digits instead of 16 bytes.
local function permit_of(owner)
  if #owner == 32 and tonumber(redis.pcall('ZSCORE', SECOND, owner)) then
    return owner
  end
  local hex = string.gsub(string.sub(owner, 1, 36), '-', '')
  if #hex ~= 32 or string.find(hex, '%X') then
    return owner
  end
  return (string.gsub(hex, '%x%x', function(byte) return string.char(tonumber(byte, 16)) end))
end

local function permit_text(permit)
  return #permit == 16 and
      (string.gsub(permit, '.', function(byte) return string.format('%02x', string.byte(byte)) end)) or permit
end

-- The field of the holder record that names the owner of a permit.
local function permit_field(permit)
  return 'permit:' .. permit_text(permit)
end

local function expiry_of(owner)
  local score = tonumber(redis.pcall('ZSCORE', SECOND, permit_of(owner)))
  return score and score > now_ms() and score or nil
end

-- Whether the key has a number, or was deleted. Permits without their number stay with their holders.
local function is_number_or_missing()
  local number = redis.pcall('GET', LOCK)
  return not number or type(number) == 'string' and string.find(number, '^%-?%d+$')
end

local function holds(owner)
  return expiry_of(owner) and is_number_or_missing() and hold_count(owner)
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
  return redis.call('ZCOUNT', SECOND, '(' .. now_ms(), '+inf')
end

local function free_permits(limit)
  return tonumber(redis.call('GET', LOCK)) or limit - redis.call('ZCARD', SECOND)
end

local function set_free_permits(number)
  redis.call('SET', OWN_NUMBER, number, 'PX', FENCE_MEMORY)
  redis.call('SET', LOCK, number, 'KEEPTTL')
end

-- 0: the request does not say how many permits there are.
local function requested_limit(requested)
  return tonumber(requested) or 0
end

local function capacity()
  local most = free_permits(0) + redis.call('ZCARD', SECOND)
  return most, live_permits()
end

-- Takes back expired permits.
local function purge_expired()
  if redis.call('ZCOUNT', SECOND, '-inf', now_ms()) == 0 then
    return
  end
  local gone = redis.call('ZREMRANGEBYSCORE', SECOND, '-inf', now_ms())
  if redis.call('EXISTS', LOCK) == 1 then
    set_free_permits(free_permits() + gone)
  end
  freed = true
end

-- The reply to a request that gives another number of permits. If no permit is held, and rlock wrote the number at the key, the
-- request sets the number instead. A number that rlock did not write may belong to another program.
local function mismatch(requested)
  local limit = requested_limit(requested)
  local permits = free_permits(limit) + redis.call('ZCARD', SECOND)
  if limit == 0 or limit == permits then
    return nil
  end
  local are_held = live_permits() > 0
  if are_held or redis.call('GET', OWN_NUMBER) ~= redis.call('GET', LOCK) then
    return {'differs', permits, limit, are_held and 1 or 0}
  end
  set_free_permits(limit)
  redis.call('DEL', SECOND)
end

local function admits(requested)
  if redis.call('EXISTS', LOCK) == 1 and (kind_at_key(NAME) ~= NAME or mismatch(requested)) then
    return false
  end
  purge_expired()
  return free_permits(requested_limit(requested)) > 0
end

local function has_no_holder()
  return live_permits() == 0
end

local function set_ttl(owner, ttl)
  redis.call('ZADD', SECOND, now_ms() + tonumber(ttl), permit_of(owner))
end

-- Writes OWN_NUMBER first: a write that the server refuses fails before a permit is given away.
local function add_holder(owner, ttl, requested)
  local number = free_permits(requested_limit(requested)) - 1
  redis.call('SET', OWN_NUMBER, number, 'PX', FENCE_MEMORY)
  redis.call('HSET', HOLDER, permit_field(permit_of(owner)), owner)
  set_ttl(owner, ttl)
  redis.call('SET', LOCK, number, 'KEEPTTL')
end

local function add_hold(owner)
  return change_hold_count(owner, 1)
end

local function reentry_obstacle() end

-- PEXPIRE comes first: a full memory refuses ZADD, but not after a write that it allows.
local function extend(owner, ttl)
  local left = expiry_of(owner) - now_ms()
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', HOLDER, math.max(redis.call('PTTL', HOLDER), tonumber(ttl)))
    set_ttl(owner, ttl)
    return left
  end
end

local function remove_holder(owner)
  redis.call('HDEL', HOLDER, permit_field(permit_of(owner)))
  if redis.call('ZREM', SECOND, permit_of(owner)) == 1 then
    local before = tonumber(redis.call('GET', LOCK))
    set_free_permits(before and before + 1 or math.max(1, free_permits(requested_limit(REQUESTED_MODE))))
    freed = true
  end
end

local function remove_hold(owner)
  if hold_count(owner) > 1 then
    return change_hold_count(owner, -1)
  end
  remove_holder(owner)
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
  local number = freed and free_permits(0)
  if number and number > 0 then
    publish_to_foreign(number)
  end
end

local function missing_kind_right(no)
  return no('set', LOCK, '1', 'keepttl') or no('set', OWN_NUMBER, '1') or no('exists', SECOND) or no('zscore', SECOND, 'm')
      or no('zadd', SECOND, '1', 'm') or no('zrem', SECOND, 'm') or no('zcard', SECOND)
      or no('zcount', SECOND, '0', '1') or no('zrangebyscore', SECOND, '0', '1') or no('zremrangebyscore', SECOND, '0', '1')
end
