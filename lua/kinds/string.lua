-- string: one holder at a time, whose name is the value of the key: SET KEY owner NX PX ttl, as most clients take a lock.
-- Those clients poll: they neither send nor read messages.
local NAME, MULTI_HOLDER, NEEDS_NO_KEY = 'string', false, true
local OTHER_QUEUE = QUEUE

local function holds(owner)
  if redis.pcall('GET', LOCK) ~= owner then
    return nil
  end
  return hold_count(owner)  -- inline
end

local function holders()
  local owner = redis.pcall('GET', LOCK)
  return type(owner) == 'string' and {owner, hold_count(owner), ''} or {}
end

local function add_holder(owner, ttl)
  redis.call('SET', LOCK, owner, 'PX', ttl)
end

local function add_hold(owner)
  return change_hold_count(owner, 1)
end

local function remove_hold(owner)
  local count = hold_count(owner)  -- inline
  if count > 1 then
    return change_hold_count(owner, -1)  -- inline
  end
  remove_holder()
  return 0
end

local function is_redisson_hold()
  return false
end

local function announce_free() end

local function missing_kind_right(no)
  return no('set', LOCK, 'v')
end
