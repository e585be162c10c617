-- trail: what happened to the lock lately, as a list of texts; the same for every kind.
local TRAIL_MEMORY = 3600000      -- ms that what happened is told, longer than anybody repeats a release
local TROUBLE_MEMORY = 86400000   -- ms that trouble is told
local TRAIL_LENGTH = 128          -- entries, about

local parting  -- what is to be told with the next grant, as one event, or at the end: 'released\0HOLD…'

-- A list of texts that are put together in one go: a stream, tables and asking for the time would cost five times as much.
local function record(memory, moment, words)
  if redis.call('RPUSH', EVENTS, moment .. '\0' .. words) > TRAIL_LENGTH + 32 then
    redis.call('LTRIM', EVENTS, -TRAIL_LENGTH, -1)
  end
  redis.call('PEXPIRE', EVENTS, memory)
end

-- Who was let in; and who left for it, if somebody did. The number says when.
local function tell_grant(owner, fence, info, wish)
  local how = parting and parting .. '\0to\0' or 'acquired\0'
  parting = nil
  record(TRAIL_MEMORY, fence, how .. owner .. '\0info\0' .. info .. (SHARES and '\0wish\0' .. wish or ''))
end

local function moment_of_now()
  local time = redis.call('TIME')
  return time[1] .. '.' .. time[2]
end

-- What no grant has taken along.
local function tell_parting(memory)
  if parting then
    record(memory or TRAIL_MEMORY, moment_of_now(), parting)
    parting = nil
  end
end

-- Trouble is told beside the answer, which must not fail for it.
local function tell_trouble(words)
  redis.pcall('RPUSH', EVENTS, moment_of_now() .. '\0' .. words)
  redis.pcall('LTRIM', EVENTS, -TRAIL_LENGTH, -1)
  redis.pcall('PEXPIRE', EVENTS, TROUBLE_MEMORY)
end

-- Whether an entry says so: "acquired", owner.
local function says(entry, word, value)
  return string.find(entry .. '\0', '\0' .. word .. '\0' .. value .. '\0', 1, true)
end

-- Whether by the trail OWNER has the lock still; nil: the trail does not name it.
local function had()
  local trail = redis.pcall('LRANGE', EVENTS, 0, -1)
  for i = #trail, 1, -1 do
    local entry = trail[i]
    if says(entry, 'acquired', OWNER) or says(entry, 'to', OWNER) then
      return true
    elseif says(entry, 'lost', OWNER) or says(entry, 'forced', OWNER)
        or says(entry, 'owner', OWNER) and not string.find(entry, '\0left\0', 1, true) then
      return false
    end
  end
end
