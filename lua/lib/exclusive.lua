-- exclusive: what the kinds do alike whose lock has one holder at a time.
local function capacity(found)
  return 0, #found / 3
end

local function admits()
  return redis.call('EXISTS', LOCK) == 0
end

local function has_no_holder()
  return true
end

local function reentry_obstacle() end

local function mismatch() end

local function set_ttl(_, ttl)
  redis.call('PEXPIRE', LOCK, ttl)
end

local function extend(_, ttl)
  return extend_key(LOCK, ttl)  -- inline
end

local function remove_holder()
  redis.call('DEL', LOCK)
end

local function next_expiry_ms()
  return redis.call('PTTL', LOCK)
end

local function remaining_ms()
  return next_expiry_ms()
end
