-- permits: at most so many holders at a time, as Redisson's RPermitExpirableSemaphore.
--
--   the lock        string: how many permits are free. The only key that has no ttl: it is the number itself
--   its second key  sorted set {permit: when it expires, in ms}; a permit is the 16 bytes of its owner's uuid, so
--                   that Java can name it. It goes with its last member
--   the channel     the number of free permits
local NAME, SHARES = 'permits', true
local LIMIT = tonumber(WISH) or 0  -- 0: who asks has no say
local MANY = 64

local function moment()
  return math.floor(now() / 1000)
end

local function permit_of(owner)
  local hex = string.gsub(string.sub(owner, 1, 36), '-', '')
  if #hex ~= 32 or string.find(hex, '%X') then
    return owner
  end
  return (string.gsub(hex, '%x%x', function(byte) return string.char(tonumber(byte, 16)) end))
end

local function shown(permit)
  return #permit == 16 and (string.gsub(permit, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
      or permit
end

local function expiry_of(owner)
  local score = tonumber(redis.pcall('ZSCORE', SECOND, permit_of(owner)))
  return score and score > moment() and score or nil
end

local function holds(owner)
  return expiry_of(owner) and counted(owner)
end

-- By the names that they told us; those of others by their permit.
local function holders()
  local named = {}
  for _, field in ipairs(redis.call('HKEYS', HOLDER)) do
    named[permit_of(field)] = field
  end
  local found = {}
  for _, permit in ipairs(redis.call('ZRANGEBYSCORE', SECOND, '(' .. moment(), '+inf', 'LIMIT', 0, MANY)) do
    local owner = named[permit] or shown(permit)
    found[#found + 1] = owner
    found[#found + 1] = counted(owner)
    found[#found + 1] = ''
  end
  return found
end

-- What has expired is free again.
local function purge()
  local gone = redis.call('ZREMRANGEBYSCORE', SECOND, '-inf', moment())
  if gone > 0 then
    redis.call('INCRBY', LOCK, gone)
  end
end

-- Whose number differs is told so while anybody holds a permit; else the number is its own.
local function disagreement()
  local limit = tonumber(redis.call('GET', LOCK)) + redis.call('ZCARD', SECOND)
  if limit == LIMIT or LIMIT == 0 then
    return nil
  end
  if redis.call('ZCOUNT', SECOND, '(' .. moment(), '+inf') > 0 then
    return {'differs', limit}
  end
  redis.call('SET', LOCK, LIMIT)
  redis.call('DEL', SECOND)
end

local function admits()
  if redis.call('EXISTS', LOCK) == 0 then
    return true
  end
  if kind_there() ~= NAME or disagreement() then
    return false
  end
  purge()
  return tonumber(redis.call('GET', LOCK)) > 0
end

local function expire(owner, ttl)
  redis.call('ZADD', SECOND, moment() + tonumber(ttl), permit_of(owner))
end

local function enter(owner, ttl)
  redis.call('SETNX', LOCK, LIMIT)
  redis.call('DECRBY', LOCK, 1)
  expire(owner, ttl)
end

local function nest(owner)
  return count(owner, 1)
end

local function no_nesting() end

-- PEXPIRE first: a full memory refuses ZADD, but not after a write that it allows.
local function extend(owner, ttl)
  if expiry_of(owner) < moment() + tonumber(ttl) then
    redis.call('PEXPIRE', HOLDER, math.max(redis.call('PTTL', HOLDER), tonumber(ttl)))
    expire(owner, ttl)
    return true
  end
end

local function remove(owner)
  if redis.call('ZREM', SECOND, permit_of(owner)) == 1 then
    redis.call('INCRBY', LOCK, 1)
  end
end

local function leave(owner)
  if counted(owner) > 1 then
    return count(owner, -1)
  end
  remove(owner)
  return 0
end

local function next_change()
  local first = redis.call('ZRANGE', SECOND, 0, 0, 'WITHSCORES')[2]
  return first and math.max(0, tonumber(first) - moment()) or -1
end

local function say_free()
  redis.call('PUBLISH', CHANNEL, redis.call('GET', LOCK) or '0')
end

local NEEDED = {
  {'get', LOCK}, {'incrby', LOCK, '1'}, {'decrby', LOCK, '1'}, {'zscore', SECOND, 'm'}, {'zadd', SECOND, '1', 'm'},
  {'zrem', SECOND, 'm'}, {'zremrangebyscore', SECOND, '0', '1'}, {'publish', CHANNEL, '0'},
}
