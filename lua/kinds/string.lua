-- string: one holder at a time, in the key's own value: SET KEY owner NX PX ttl, as most clients take a lock. They
-- poll: nothing is said to them, and nothing is heard from them.
local NAME, SHARES = 'string', false

local function holds(owner)
  return redis.pcall('GET', LOCK) == owner and counted(owner) or nil
end

local function holders()
  local owner = redis.pcall('GET', LOCK)
  return type(owner) == 'string' and {owner, counted(owner), ''} or {}
end

local function room(found)
  return 0, #found / 3
end

local function admits()
  return redis.call('EXISTS', LOCK) == 0
end

local function no_holder()
  return true
end

local function enter(owner, ttl)
  redis.call('SET', LOCK, owner, 'PX', ttl)
end

local function nest(owner)
  return count(owner, 1)
end

local function no_nesting() end

local function disagreement() end

local function expire(_, ttl)
  redis.call('PEXPIRE', LOCK, ttl)
end

local function extend(_, ttl)
  return at_least(LOCK, ttl)
end

local function remove()
  redis.call('DEL', LOCK)
end

local function leave(owner)
  if counted(owner) > 1 then
    return count(owner, -1)
  end
  remove()
  return 0
end

local function is_redissons()
  return false
end

local function next_change()
  return redis.call('PTTL', LOCK)
end

local function lasts()
  return next_change()
end

local function say_free() end

local function refuses(no)
  return no('set', LOCK, 'v')
end
