-- release: release a lock that OWNER still holds and pass it on, or leave the queue (core/lock/calls.h, Release).
--
--   returns  Released, StillHeld, Left; Lost: see lost_reply() in lib/queue.lua
--
-- A request that is sent twice gets the same reply, apart from `earlier`: the first request removes the hold from the record and leaves an entry in
-- the event log, or remembers the departure from the queue; the second request finds that. The first write is DEL or HDEL, which
-- a full memory allows; after one write the server allows the other writes too.
local HOLD_ID, OWN_SUBSCRIBERS, MIN_HOLD, REMEMBER_SUCCESS = ARGV[@release.hold_id@], tonumber(ARGV[@release.own_subscribers@]), tonumber(ARGV[@release.min_hold@]), tonumber(ARGV[@release.remember_success@])
local RESULT, HISTORY, INFO = ARGV[@release.result@] or '', tonumber(ARGV[@release.history@]), ARGV[@release.info@] or ''

-- Whether this is one of the most frequent cases: the last hold of its owner, whose record names it. The first of these cases: no
-- client waits in a queue.
local last_hold, record = false, false
local waiting  -- how many of the queues exist
if OWN_SUBSCRIBERS >= 0 and MIN_HOLD == 0 and REMEMBER_SUCCESS == 0 then
  local held = holds(OWNER)  -- inline
  record = held == 1 and redis.call('HMGET', HOLDER, 'hold:' .. HOLD_ID, 'keep:' .. OWNER, 'read:' .. HOLD_ID, 'fence:' .. OWNER)
  last_hold = record and record[1] and not record[2]
end
if last_hold then
  pending_release, pending_memory = '@kind.released@\0' .. HOLD_ID .. '\0@word.owner@\0' .. OWNER .. RESULT, HISTORY
  if MULTI_HOLDER then
    redis.call('HDEL', HOLDER, 'hold:' .. HOLD_ID, 'read:' .. HOLD_ID)
    REQUESTED_MODE = record[3] and 'read' or REQUESTED_MODE
    remove_hold(OWNER)  -- inline
    forget_owner(OWNER)  -- inline
  else
    redis.call('DEL', LOCK, HOLDER, FORCE)
  end
  waiting = redis.call('EXISTS', QUEUE, FAIR, OTHER_QUEUE)
  if waiting == 0 then
    log_pending_release()  -- inline
    if MULTI_HOLDER then
      announce_free()  -- inline
    else
      if CHANNEL ~= '' then
        publish_to_foreign('0')  -- inline
      end
    end
    return {'released', 0}
  end
end

-- Otherwise.
local granted = last_hold and tonumber(record[4])  -- the fencing number is the time of the grant; anything may have written it
if granted then
  local now = now_us()  -- inline
  turn_note = now - granted < QUICK_TURN and ' quick' or ''
end
-- The second of these cases, for an exclusive lock: only clients of this queue wait, so that it is not the turn of others
-- (turn_of_others), and the first one is alive.
if not MULTI_HOLDER then
  if last_hold and waiting == (OTHER_QUEUE == QUEUE and 2 or 1) then
    local others_wait = false
    if CHANNEL ~= '' then
      others_wait = has_more_subscribers(CHANNEL, OWN_SUBSCRIBERS)  -- inline
    end
    if not others_wait then
      local waiter, arrival = pop_admissible_waiter()  -- inline
      local admitted = false
      if waiter then
        may_examine = may_examine - 1
        admitted = admit(waiter, arrival)  -- inline
      end
      if admitted then
        return {'released', 1}
      end
    end
  end
end

-- Otherwise.
-- The third of these cases: any other clients wait.
if last_hold then
  local admitted = pass_on(OWN_SUBSCRIBERS)
  log_pending_release()
  return {'released', admitted}
end

-- Otherwise.
local function time_in_ms(ms)
  return math.floor(now_us() / 1000) + ms
end

-- The reply to an earlier release of a hold, by its entry in the event log; nil: there is none.
local function earlier_reply(hold)
  for _, entry in ipairs(redis.call('LRANGE', EVENTS, 0, -1)) do
    if entry_has(entry, '@kind.released@', hold) then
      local left = string.match(entry, '%z@word.left@%z(%d+)')
      return left and {'still_held', tonumber(left)} or {'released', string.find(entry, '\0@word.to@\0', 1, true) and 1 or 0, 1}
    end
  end
end

-- Remembers and publishes the success, for as long as a waiter may have waited meanwhile at least, because waiters share the
-- success.
local function remember_success()
  local since = now_us() - (tonumber(ARGV[@release.ran@]) or 0) * 1000
  redis.call('SET', DONE, string.format('%.0f', since), 'PX', math.max(REMEMBER_SUCCESS, QUEUE_MEMORY))
  if SHARDED then
    redis.call('SPUBLISH', DONE, 'done')
  else
    redis.call('PUBLISH', DONE, 'done')
  end
end

-- Records how a run ended whose lease was over before a release came. The run had ended before that, so it has lost nothing.
local function note_late_result()
  if REMEMBER_SUCCESS > 0 then
    remember_success()
  end
  log_trouble('@kind.released@\0' .. HOLD_ID .. '\0@word.owner@\0' .. OWNER .. RESULT, math.max(TROUBLE_MEMORY, history_of(INFO)))
  return loss_reply()
end

-- Stores the --min-hold of a hold that is not the last one in the record. PEXPIRE is needed if the record was lost, because HSET
-- then makes a record without a ttl.
local function store_min_hold(ms)
  local until_then = time_in_ms(ms)
  local noted = tonumber(redis.call('HGET', HOLDER, 'keep:' .. OWNER)) or 0
  redis.call('HSET', HOLDER, 'keep:' .. OWNER, string.format('%.0f', math.max(noted, until_then)))
  redis.call('PEXPIRE', HOLDER, math.max(redis.call('PTTL', HOLDER), ms))
end

-- The ms for which the lock must stay taken: the longest --min-hold of all holds.
local function longest_min_hold()
  local noted = tonumber(redis.call('HGET', HOLDER, 'keep:' .. OWNER))
  return noted and math.max(MIN_HOLD, noted - time_in_ms(0)) or MIN_HOLD
end

local held = holds(OWNER)
if not held then
  if leave_queue() then
    return {'left'}
  end
  local earlier = earlier_reply(HOLD_ID)
  if earlier then
    return earlier
  elseif has_left_queue() and holds_by_event_log() == nil then
    return {'left'}
  end
  if RESULT == UNUSED and HOLD_ID ~= OWNER then
    return {'lost', '@loss.none@', false, false, false}  -- a nested run that did not begin says nothing of its outer one's hold
  end
  if INFO ~= '' and RESULT ~= UNUSED and not string.find(RESULT, '\0@word.outcome@\0@outcome.lost@', 1, true) then
    return note_late_result()
  end
  local gave_up = RESULT == UNUSED and OWN_SUBSCRIBERS >= 0  -- the run gave up, and no quorum takes back an attempt
  local known = holds_by_event_log()
  if gave_up and known == nil and not has_left_queue(UNSEEN) then
    pcall(remember_leaver, UNSEEN .. OWNER)  -- its first request may still come, and must not replace other waiters
  elseif gave_up and known == false then
    log_trouble('@kind.unused@\0' .. OWNER)  -- the loss is logged already
  end
  local reply = lost_reply(INFO ~= '' and INFO, RESULT)
  if OWN_SUBSCRIBERS >= 0 then
    try_admit_waiters()
  end
  return reply
end
-- If the owner has a record that does not name the hold, the hold was released before, or was never granted. If the owner's
-- record was lost, the hold counts; but a nested hold takes the last hold only if the outer hold was released.
if redis.call('HDEL', HOLDER, 'hold:' .. HOLD_ID) == 0 then
  local earlier = earlier_reply(HOLD_ID)
  local only_outer_left = HOLD_ID ~= OWNER and held == 1 and not earlier_reply(OWNER)
  if earlier or only_outer_left or redis.call('HEXISTS', HOLDER, OWNER) == 1 then
    return earlier or {'still_held', held}
  end
end
if MULTI_HOLDER and redis.call('HDEL', HOLDER, 'read:' .. HOLD_ID) == 1 then
  REQUESTED_MODE = 'read'  -- whatever holds its owner has: a release by a token may not know the mode
end
pending_release, pending_memory = '@kind.released@\0' .. HOLD_ID .. '\0@word.owner@\0' .. OWNER .. RESULT, HISTORY
if REMEMBER_SUCCESS > 0 then
  remember_success()
end
if held > 1 and MIN_HOLD > 0 then
  store_min_hold(MIN_HOLD)
end
local min_hold = held == 1 and longest_min_hold() or 0
if min_hold > 0 then
  local info = redis.call('HGET', HOLDER, OWNER) or ''
  -- Its job is over, and no client renews it.
  redis.call('HSET', HOLDER, OWNER, (info:gsub('@field.automatic@%d', '@field.over@1@field.automatic@0')))
  extend_records(min_hold)
  set_ttl(OWNER, min_hold)
  log_pending_release()
  have_end_watched(min_hold)
  return {'released'}
end
local left = remove_hold(OWNER)
if left > 0 then
  pending_release = pending_release .. '\0@word.left@\0' .. left
  log_pending_release()
  if MULTI_HOLDER and OWN_SUBSCRIBERS >= 0 then
    hand_over()  -- because a writer that goes on reading makes room for other readers
    announce_free()
  end
  return {'still_held', left}
end
forget_owner(OWNER)
-- A JVM that waits for this server, as one of several, may have been refused because of the attempt, and sleeps for the whole
-- ttl. Redisson reads 00 as 0; rlock waiters ignore 00.
if OWN_SUBSCRIBERS < 0 and CHANNEL ~= '' then
  publish_to_foreign('00')
end
local admitted = OWN_SUBSCRIBERS >= 0 and pass_on(OWN_SUBSCRIBERS) or 0
log_pending_release()
return {'released', admitted}
