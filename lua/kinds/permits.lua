-- permits: at most so many holders at a time, as Redisson's RPermitExpirableSemaphore.
--
--   the lock        string: how many permits are free
--   its second key  sorted set {permit: when it expires, in ms}; a permit is the 16 bytes of its owner's uuid, so
--                   that Java can name it
--   the channel     the number of free permits
--
-- Neither has a ttl, for both are the semaphore itself: a number that expired under living permits, or permits without
-- their number, would let in too many, and a JVM does not push back a ttl of ours. What a killed holder leaves is its
-- member with its expiry, which counts for nothing from then on and is taken out by whoever asks next.
--
-- The number is written with SET alone, which a holder needs anyway: where the server cannot be asked for rights
-- (Redis 6) nothing is left half done.
local NAME, SHARES = 'permits', true
local MANY = 64

local freed = false  -- whether there are more than before

local function moment()
  return math.floor(now() / 1000)
end

-- Redisson before 3.17 writes the 32 digits themselves.
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

local function shown(permit)
  return #permit == 16 and (string.gsub(permit, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
      or permit
end

-- Where it is noted whose it is.
local function record_of(permit)
  return 'permit:' .. shown(permit)
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
  local found = {}
  for _, permit in ipairs(redis.call('ZRANGEBYSCORE', SECOND, '(' .. moment(), '+inf', 'LIMIT', 0, MANY)) do
    local owner = redis.call('HGET', HOLDER, record_of(permit)) or shown(permit)
    found[#found + 1] = owner
    found[#found + 1] = counted(owner)
    found[#found + 1] = ''
  end
  return found
end

local function living()
  return redis.call('ZCOUNT', SECOND, '(' .. moment(), '+inf')
end

-- Whoever deletes the number does not take the permits away from those who hold them.
local function free(limit)
  return tonumber(redis.call('GET', LOCK)) or limit - redis.call('ZCARD', SECOND)
end

local function set_free(number)
  redis.call('SET', LOCK, number, 'KEEPTTL')
end

-- 0: who asks has no say
local function limit_in(wish)
  return tonumber(wish) or 0
end

local function room()
  local most = free(0) + redis.call('ZCARD', SECOND)
  return most, living()
end

-- What has expired is free again.
local function purge()
  if redis.call('ZCOUNT', SECOND, '-inf', moment()) == 0 then
    return
  end
  local gone = redis.call('ZREMRANGEBYSCORE', SECOND, '-inf', moment())
  if redis.call('EXISTS', LOCK) == 1 then
    set_free(free() + gone)
  end
  freed = true
end

-- Whose number differs is told so, unless nobody holds a permit and the number is known to be one of permits: then it is
-- its own to say. A number of which we know nothing may be anybody's.
local function disagreement(wish)
  local limit = limit_in(wish)
  local there = free(limit) + redis.call('ZCARD', SECOND)
  if limit == 0 or limit == there then
    return nil
  end
  if living() > 0 or redis.call('EXISTS', FENCE, SECOND) == 0 then
    return {'differs', there, limit}
  end
  set_free(limit)
  redis.call('DEL', SECOND)
end

local function admits(wish)
  if redis.call('EXISTS', LOCK) == 1 and (kind_there(NAME) ~= NAME or disagreement(wish)) then
    return false
  end
  purge()
  return free(limit_in(wish)) > 0
end

local function no_holder()
  return living() == 0
end

local function expire(owner, ttl)
  redis.call('ZADD', SECOND, moment() + tonumber(ttl), permit_of(owner))
end

-- The number is written first as it is: what could be refused is refused before a permit is given away.
local function enter(owner, ttl, wish)
  local before = free(limit_in(wish))
  set_free(before)
  redis.call('HSET', HOLDER, record_of(permit_of(owner)), owner)
  expire(owner, ttl)
  set_free(before - 1)
end

local function nest(owner)
  return count(owner, 1)
end

local function no_nesting() end

-- PEXPIRE first: a full memory refuses ZADD, but not after a write that it allows.
local function extend(owner, ttl)
  local left = expiry_of(owner) - moment()
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', HOLDER, math.max(redis.call('PTTL', HOLDER), tonumber(ttl)))
    expire(owner, ttl)
    return left
  end
end

local function remove(owner)
  redis.call('HDEL', HOLDER, record_of(permit_of(owner)))
  if redis.call('ZREM', SECOND, permit_of(owner)) == 1 then
    local before = tonumber(redis.call('GET', LOCK))
    set_free(before and before + 1 or math.max(1, free(limit_in(WISH))))
    freed = true
  end
end

local function leave(owner)
  if counted(owner) > 1 then
    return count(owner, -1)
  end
  remove(owner)
  return 0
end

local function is_redissons(permit)
  return #permit == 32 and not string.find(permit, '%X')
end

local function next_change()
  local first = redis.call('ZRANGEBYSCORE', SECOND, '(' .. moment(), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return first and math.max(0, tonumber(first) - moment()) or -1
end

local function lasts(owner)
  return expiry_of(owner) - moment()
end

local function say_free()
  local number = freed and free(0)
  if number and number > 0 then
    announce(number)
  end
end

local function refuses(no)
  return no('set', LOCK, '1', 'keepttl') or no('exists', SECOND) or no('zscore', SECOND, 'm')
      or no('zadd', SECOND, '1', 'm') or no('zrem', SECOND, 'm') or no('zcard', SECOND) or no('zcount', SECOND, '0', '1')
      or no('zrangebyscore', SECOND, '0', '1') or no('zremrangebyscore', SECOND, '0', '1')
end
