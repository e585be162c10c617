-- plain: one holder at a time, as Redisson's RLock: hash {owner: hold count}.
local NAME, MULTI_HOLDER, NEEDS_NO_KEY = 'lock', false, true
local OTHER_QUEUE = 'rlock:queue-rw' .. string.sub(QUEUE, #'rlock:queue' + 1)

-- Needs one call, because this is the most frequent operation. A reader of a read-write lock has the same field, but beside
-- the field `mode`.
local function holds(owner)
  local fields = redis.pcall('HMGET', LOCK, owner, 'mode')
  return not fields[2] and tonumber(fields[1]) or nil
end

local function holders()
  local fields = redis.pcall('HLEN', LOCK) == 1 and redis.call('HGETALL', LOCK) or {}
  return tonumber(fields[2]) and {fields[1], tonumber(fields[2]), ''} or {}
end

local function add_holder(owner, ttl)
  redis.call('HSET', LOCK, owner, '1')
  redis.call('PEXPIRE', LOCK, ttl)
end

local function add_hold(owner)
  return redis.call('HINCRBY', LOCK, owner, '1')
end

local function remove_hold(owner)
  local left = holds(owner) - 1
  if left > 0 then
    return redis.call('HINCRBY', LOCK, owner, '-1')
  end
  remove_holder()
  return 0
end

-- Redisson names an owner UUID:THREAD, and in a transaction UUID:THREAD:ID.
local function is_redisson_hold(owner)
  local uuid, rest = string.match(owner, '^([%x-]+):%-?%d+(.*)$')
  local has_name = uuid and #uuid == 36 and (rest == '' or string.sub(rest, 1, 1) == ':')
  return has_name and string.find(redis.call('HGET', LOCK, owner), '^[1-9]%d*$')
end

-- Tells all waiters, and the first one in the queue of a fair lock.
local function announce_free()
  publish_to_foreign('0')
  local fair = redis.call('LINDEX', FAIR, '0')
  if fair then
    redis.call('PUBLISH', CHANNEL .. ':' .. fair, '0')
    if SHARDED then
      redis.call('SPUBLISH', CHANNEL .. ':' .. fair, '0')
    end
  end
end

local function missing_kind_right(no)
  return no('hgetall', LOCK) or no('hincrby', LOCK, 'f', '1') or no('lindex', FAIR, '0')
end
