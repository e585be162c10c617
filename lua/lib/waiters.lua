-- waiters: who is in line, and what they are told. The same for every kind of lock.
local SUBSCRIBE_GRACE = 250000      -- us after its arrival during which a waiter may not have subscribed yet
local QUEUE_MEMORY = 30000          -- ms without a poll by any waiter until the queue is forgotten
local WATCH_PAUSE = 1000            -- ms for which waiters that were told to watch hand-overs are not told again
local WATCH_STEP = 20               -- ms between the look of one of them and of the next
local WATCHERS = 8                  -- of them, at each end of the line
local CALL_TIME = 200               -- ms in which the waiters that are told to ask do so

-- Deletes the record of a waiter and returns the mode that it asked for, where modes differ.
local function remove_waiter_record(waiter)
  local requested = MULTI_HOLDER and redis.call('HGET', WAITERS, 'wish:' .. waiter)
  redis.call('HDEL', WAITERS, waiter, 'wish:' .. waiter)
  return requested or REQUESTED_MODE
end

-- Sends a message to the first waiter that can act on it; false when the queue is empty. A waiter without a subscriber
-- is removed: either it is dead, or it has just arrived and has not subscribed yet. The latter finds itself removed
-- when it has subscribed, and asks again.
local function notify_first(message)
  for _ = 1, 50 do
    local first = redis.call('ZRANGE', QUEUE, 0, 0)[1]
    if not first then
      return false
    end
    if notify(first, message) > 0 then
      return true
    end
    redis.call('ZREM', QUEUE, first)
    remove_waiter_record(first)
  end
  return false
end

-- Sends a message to the first waiter that listens, and removes the dead ones before it: the waiters behind them would hear
-- nothing. One that has just arrived stays, because it may not have subscribed yet. Returns the place of the waiter that
-- listens, from 0; nil: there is none.
local function notify_first_alive(message)
  local place = 0
  for _ = 1, 50 do
    local waiter, arrival = unpack(redis.call('ZRANGE', QUEUE, place, place, 'WITHSCORES'))
    if not waiter then
      return nil
    elseif notify(waiter, message) > 0 then
      return place
    elseif now_us() - tonumber(arrival) < SUBSCRIBE_GRACE then
      place = place + 1
    else
      redis.call('ZREM', QUEUE, waiter)
      remove_waiter_record(waiter)
    end
  end
end

-- Tells the first waiter that it is first, and in how many ms the lock ends unless it is renewed: a waiter that came when
-- many others waited does not know that. -1: never. If the message is lost the waiter prepares its job and looks later.
local function announce_next(ms)
  notify_first_alive(tonumber(ms) > 0 and 'next ' .. ms or 'next')
end

-- Whether a waiter is alive. One that has just arrived may not have subscribed yet.
local function is_alive(waiter, arrival)
  return now_us() - tonumber(arrival) < SUBSCRIBE_GRACE or is_subscribed(waiter)
end

-- Stores a field that concerns all waiters.
local function store_note(field, text)
  redis.call('HSET', WAITERS, field, text)
  redis.call('PEXPIRE', WAITERS, QUEUE_MEMORY)
end

local function store_time(event)
  store_note(event, string.format('%.0f', now_us()))
end

-- The waiters at both ends of a line, from this place on, because those in front may all be stopped.
local function ends_of_line(queue, place)
  local waiters = redis.call('ZRANGE', queue, place, place + WATCHERS - 1)
  local behind = math.max(place + WATCHERS, redis.call('ZCARD', queue) - WATCHERS)
  for _, waiter in ipairs(redis.call('ZRANGE', queue, behind, -1)) do
    waiters[#waiters + 1] = waiter
  end
  return waiters
end

local was_called = false  -- whether this script has told waiters to ask

-- Tells the waiters at both ends of the line to ask for a free lock, because those in front may be silent. Returns how many listen.
local function call_waiters()
  local listening = 0
  for _, waiter in ipairs(ends_of_line(QUEUE, 0)) do
    listening = listening + notify(waiter, 'look 0')
  end
  was_called = listening > 0
  return listening
end

-- A waiter that has just come was not told to watch. Returns in how many ms it is to look, as those do that were told; nil: none
-- was told lately. `place`: of the waiter, because many may come at once.
local function ms_to_watch(place)
  local steps = place % (2 * WATCHERS) * WATCH_STEP
  if was_called then
    return CALL_TIME + steps
  end
  local told = tonumber(redis.call('HGET', WAITERS, '#watch') or 0)
  local age = math.abs(now_us() - told) / 1000
  return age < WATCH_PAUSE and math.ceil(HANDOVER_CONFIRMATION + WATCH_PAUSE - age) + steps or nil
end

-- Tells the first remaining waiter to check whether the admitted one confirms. It may be stopped, which the server cannot see,
-- so a few others are told to look later: those behind it, and the last ones, because all in front may be stopped. They look
-- when every hand-over is over of which they were not told.
local function have_hand_over_watched(ms)
  local place = notify_first_alive('claim ' .. ms)
  local told = tonumber(redis.call('HGET', WAITERS, '#watch') or 0)
  if not place or math.abs(now_us() - told) < WATCH_PAUSE * 1000 then
    return
  end
  local watchers = ends_of_line(QUEUE, place + 1)
  for i, watcher in ipairs(watchers) do
    notify(watcher, 'watch ' .. HANDOVER_CONFIRMATION + WATCH_PAUSE + i * WATCH_STEP)
  end
  if #watchers > 0 then
    store_time('#watch')
  end
end
