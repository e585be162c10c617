-- event_log: what happened to the lock recently, as a list of texts. The same for every kind. core/lock/schema.h has the words
-- and what they mean; the build puts them where a script says @kind.released@ or @field.lease@.
local TROUBLE_MEMORY = 86400000  -- ms that trouble is kept

local UNUSED = '\0@word.outcome@\0@outcome.unused@'  -- of a hold under which no run began
local CLAIM = '\0@word.claim@\0yes'  -- of a grant without a release in the same entry, to a waiter that is yet to take it

local pending_release  -- the event to log with the next grant, as one entry, or at the end: 'released', HOLD, …
local pending_memory   -- ms that this event is kept

-- Extends the ttl of the log; a caller without --history must not shorten the --history of another caller. Writes the ttl only
-- when it is shorter by a sixteenth, because reading costs less than writing.
local function keep_events(memory)
  if redis.call('PTTL', EVENTS) < memory - memory / 16 then
    redis.call('PEXPIRE', EVENTS, memory)
  end
end

-- Appends an entry. The log is a list of texts: a stream, tables and a call for the time would cost five times as much.
local function append_event(memory, time, text)
  if redis.call('RPUSH', EVENTS, time .. '\0' .. text) > EVENT_COUNT + 32 then
    redis.call('LTRIM', EVENTS, '-@default.event_count@', '-1')
  end
  keep_events(memory)  -- inline
end

-- The --history of a client. It stands first in the record of the client.
local function history_of(info)
  return tonumber(string.match(info, '@field.history@(%d+)')) or DEFAULT_HISTORY
end

-- Logs a grant, together with the release that made room, if there was one. The fencing number is the time. `arrival`: when the
-- owner joined the queue, in microseconds; nil: it did not wait. `is_claim`: the owner must still confirm the grant.
local function log_grant(owner, fence, info, requested, arrival, is_claim)
  local claim = is_claim and not pending_release and CLAIM or ''
  local how = pending_release and pending_release .. '\0@word.to@\0' or '@kind.acquired@\0'
  pending_release = nil
  local mode = MULTI_HOLDER and '\0@word.wish@\0' .. requested or ''
  local waited = arrival and '\0@word.waited@\0' .. string.format('%.0f', (fence - arrival) / 1000) or ''
  local memory = history_of(info)  -- inline
  append_event(memory, fence, how .. owner .. '\0@word.info@\0' .. info .. mode .. waited .. claim)  -- inline
end

local function timestamp()
  server_time = server_time or redis.call('TIME')
  return server_time[1] .. '.' .. server_time[2]
end

-- Logs a release that no grant has logged.
local function log_pending_release()
  if pending_release then
    local time = timestamp()  -- inline
    append_event(pending_memory or DEFAULT_HISTORY, time, pending_release)  -- inline
    pending_release = nil
  end
end

-- Logs trouble, and keeps it for `memory` ms or TROUBLE_MEMORY. An error here must not become the reply of the script.
local function log_trouble(text, memory)
  redis.pcall('RPUSH', EVENTS, timestamp() .. '\0' .. text)
  redis.pcall('LTRIM', EVENTS, -EVENT_COUNT, -1)
  pcall(keep_events, memory or TROUBLE_MEMORY)
end

-- Logs once that OWNER has confirmed a recent hand-over.
local function log_confirmation()
  local events = redis.pcall('LRANGE', EVENTS, 0, -1)
  for i = #events, 1, -1 do
    if entry_has(events[i], '@kind.confirmed@', OWNER) then
      return
    elseif entry_has(events[i], '@word.to@', OWNER)
        or entry_has(events[i], '@kind.acquired@', OWNER) and string.find(events[i], CLAIM, 1, true) then
      return log_trouble('@kind.confirmed@\0' .. OWNER, DEFAULT_HISTORY)
    end
  end
end

-- Whether OWNER still has the lock by the event log, and the lease of OWNER in ms; nil: the log does not name OWNER.
local function holds_by_event_log()
  local events = redis.pcall('LRANGE', EVENTS, 0, -1)
  for i = #events, 1, -1 do
    local entry = events[i]
    if entry_has(entry, '@kind.acquired@', OWNER) or entry_has(entry, '@word.to@', OWNER) then
      return true, tonumber(string.match(entry, '@field.lease@(%d+)'))
    elseif entry_has(entry, '@kind.lost@', OWNER) or entry_has(entry, '@kind.forced@', OWNER)
        or entry_has(entry, '@word.owner@', OWNER) and not string.find(entry, '\0@word.left@\0', 1, true) then
      return false
    end
  end
end
