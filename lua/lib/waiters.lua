-- waiters: who is in line, and what they are told. The same for every kind of lock.
local QUEUE_MEMORY = 40000          -- ms until the queue is forgotten, unless a poll extends it
local LEAST_QUEUE_MEMORY = 30000    -- ms without a poll by any waiter for which the queue is remembered at least
local WATCH_PAUSE = 1000            -- ms between two messages to watch hand-overs
local WATCH_STEP = 20               -- ms between the requests of one watching waiter and of the next
local WATCHERS = 8                  -- number of watching waiters at each end of the queue
local CALL_TIME = 200               -- ms in which the waiters that are told to ask send their requests

-- Deletes the record of a waiter and returns the mode of its request.
local function remove_waiter_record(waiter)
  local requested
  if MULTI_HOLDER then
    requested = redis.call('HGET', WAITERS, 'wish:' .. waiter)
  end
  redis.call('HDEL', WAITERS, waiter, 'wish:' .. waiter, 'passed:' .. waiter)
  return requested or REQUESTED_MODE
end

local MISSED = 0.5  -- us that are added to the place of a waiter in the queue

-- Notes that a message has missed a waiter of this queue, which may not have subscribed yet. It reads its place when it has
-- subscribed (ScriptStore::is_queued), and then asks again.
local function note_missed(queue, waiter)
  local score = redis.call('ZSCORE', queue, waiter)
  if score and score % 1 == 0 then
    redis.call('ZADD', queue, string.format('%.1f', score + MISSED), waiter)
  end
end

-- Sends a message to a waiter in line, and returns the number of its subscribers.
local function tell(queue, waiter, message)
  local listening = notify(waiter, message)  -- inline
  if listening == 0 then
    note_missed(queue, waiter)
  end
  return listening
end

-- Sends a message to the first waiter that has a subscriber; false: there is none. Removes the waiters before that one: each is
-- dead, or has just arrived and has not subscribed yet. A waiter of the second kind finds out when it has subscribed, and asks
-- again. The caller stays, because it asks at this moment; it counts as no subscriber before it has subscribed.
local function notify_first(message)
  for _ = 1, 50 do
    local first = redis.call('ZRANGE', QUEUE, 0, 0)[1]
    if not first then
      return false
    end
    if notify(first, message) > 0 then
      return true
    elseif first == OWNER then
      return false
    end
    redis.call('ZREM', QUEUE, first)
    remove_waiter_record(first)
  end
  return false
end

-- Sends a message to the first waiter that listens, and removes the dead waiters before it. A waiter that has just arrived stays,
-- because it may not have subscribed yet; it learns then that it must ask. Returns the place of the waiter that listens, from 0; nil: there is none.
local function notify_first_alive(message)
  local place = 0
  for _ = 1, 50 do
    local waiter, arrival = unpack(redis.call('ZRANGE', QUEUE, place, place, 'WITHSCORES'))
    if not waiter then
      return nil
    elseif notify(waiter, message) > 0 then
      return place
    elseif now_us() - arrival_of(arrival) < SUBSCRIBE_GRACE then
      note_missed(QUEUE, waiter)
      place = place + 1
    else
      redis.call('ZREM', QUEUE, waiter)
      remove_waiter_record(waiter)
    end
  end
end

-- Tells the first waiter that it is first, and in how many ms the lock ends unless it is renewed, because a waiter that came when
-- many others waited does not know that. -1: never. If the message is lost, the waiter prepares its job and looks later.
local function announce_next(ms)
  notify_first_alive(tonumber(ms) > 0 and 'next ' .. ms or 'next')
end

-- Whether a waiter is alive. A waiter that has just arrived counts as alive, because it may not have subscribed yet.
local function is_alive(waiter, arrival)
  return now_us() - arrival_of(arrival) < SUBSCRIBE_GRACE or is_subscribed(waiter)
end

-- Whether a freeze is first in line, and alive. No waiter gets the lock past it, and it leaves no turn to others.
local function freeze_is_next()
  local first, arrival = unpack(redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES'))
  return first and tonumber(arrival) < 0 and is_alive(first, arrival)
end

-- Stores a field that concerns all waiters.
local function store_note(field, text)
  redis.call('HSET', WAITERS, field, text)
  redis.call('PEXPIRE', WAITERS, QUEUE_MEMORY)
end

local function store_time(event)
  local now = now_us()  -- inline
  store_note(event, string.format('%.0f', now))  -- inline
end

-- The waiters at both ends of a queue, from `place` on. The last waiters belong to them, because all first waiters may be
-- stopped.
local function ends_of_line(queue, place)
  local waiters = redis.call('ZRANGE', queue, place, place + WATCHERS - 1)
  local behind = math.max(place + WATCHERS, redis.call('ZCARD', queue) - WATCHERS)
  for _, waiter in ipairs(redis.call('ZRANGE', queue, behind, -1)) do
    waiters[#waiters + 1] = waiter
  end
  return waiters
end

local was_called = false  -- whether this script has told waiters to ask

-- Tells the waiters at both ends of the queue to ask for a free lock, because the first waiters may be silent. Returns how many
-- listen.
local function call_waiters()
  local listening = 0
  for _, waiter in ipairs(ends_of_line(QUEUE, 0)) do
    listening = listening + tell(QUEUE, waiter, 'look 0')
  end
  was_called = listening > 0
  return listening
end

-- The ms between the requests of waiters that look at the same time, for the waiter at `place`.
local function steps_of(place)
  return place % (2 * WATCHERS) * WATCH_STEP
end

-- In how many ms a waiter that has just come must look, because it has missed the last message to watch; nil: there was no such
-- message lately. `place`: the place of the waiter, because many may come at once.
local function ms_to_watch(place)
  local steps = steps_of(place)
  if was_called then
    return CALL_TIME + steps
  end
  local told = tonumber(redis.call('HGET', WAITERS, '#watch') or 0)
  local age = math.abs(now_us() - told) / 1000
  return age < WATCH_PAUSE and math.ceil(HANDOVER_CONFIRMATION + WATCH_PAUSE - age) + steps or nil
end

-- Tells the waiters at both ends of the queue, from `place` on, to ask in `ms`, one after the other. Returns how many there are.
local function have_watched(place, ms)
  local watchers = ends_of_line(QUEUE, place)  -- inline
  for i, watcher in ipairs(watchers) do
    tell(QUEUE, watcher, 'watch ' .. ms + i * WATCH_STEP)  -- inline
  end
  return #watchers
end

-- Tells the first waiter to ask in `ms`, when a lock that no client renews any more ends. The first waiters may be stopped, so a
-- few other waiters ask a little later.
local function have_end_watched(ms)
  if notify_first('look ' .. ms) then
    have_watched(1, ms)
  end
end

local QUICK_TURN = 3000  -- us; jobs that follow each other in less time gain if the next one is prepared at once
local turn_note = ''     -- ' quick' if the hold that ends was as short

-- Tells the first remaining waiter to check whether the admitted waiter confirms. The first remaining waiter may be stopped,
-- which the server cannot see, so the function tells a few other waiters to look later: those behind it and the last in the
-- queue. They look when every hand-over is over of which they got no message.
local function have_hand_over_watched(ms)
  local place = notify_first_alive('claim ' .. ms .. turn_note)
  local told = tonumber(redis.call('HGET', WAITERS, '#watch') or 0)
  local now = now_us()  -- inline
  if not place and told > 0 then
    redis.call('HDEL', WAITERS, '#watch')  -- no waiter that was told is left: the note must not outlive the last one
  end
  if not place or math.abs(now - told) < WATCH_PAUSE * 1000 then
    return
  end
  local watching = have_watched(place + 1, HANDOVER_CONFIRMATION + WATCH_PAUSE)  -- inline
  if watching > 0 then
    store_time('#watch')  -- inline
  end
end
