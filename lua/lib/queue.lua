-- queue: passes the lock from one holder to the next. The same for every kind of lock.
local LONGEST_PREFERENCE = 1000000  -- us for which rlock waiters come first after a turn of foreign clients, at most
local FOREIGN_TURN = 10             -- ms for which a free lock is reserved for foreign clients
local KIND_TURN = 50                -- ms for which a free lock is reserved for a waiter of the other exclusive kind
local LEAVERS_SIZE = 2000           -- bytes of owner names that are remembered after they left the queue

-- The mode in the request of a waiter; false: its record was lost.
local function wish_of(waiter)
  return not MULTI_HOLDER and REQUESTED_MODE or redis.call('HGET', WAITERS, 'wish:' .. waiter)
end

-- Whether the first waiter could get the lock now.
local function can_admit_first()
  local first = redis.call('ZRANGE', QUEUE, 0, 0)[1]
  local wish = first and wish_of(first)
  return wish and admits(wish)
end

local may_examine = 50  -- how many waiters the script may still examine

-- Whether the first waiter could get the lock. A first waiter that could not get the lock blocks the waiters behind it, unless it
-- is dead. A waiter whose record was lost is told to ask; its request puts it in its place again.
local function find_admissible_waiter()
  while not can_admit_first() do
    local first, arrival = unpack(redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES'))
    if not first or may_examine == 0 or wish_of(first) and is_alive(first, arrival) then
      return false
    elseif not wish_of(first) then
      notify(first, 'look 0')
    end
    may_examine = may_examine - 1
    redis.call('ZREM', QUEUE, first)
    remove_waiter_record(first)
  end
  return true
end

-- Removes the first waiter from the queue and returns it with its arrival, if that waiter could get the lock.
local function pop_admissible_waiter()
  if MULTI_HOLDER then
    if not find_admissible_waiter() then
      return nil
    end
  end
  return unpack(redis.call('ZPOPMIN', QUEUE))
end

-- The ms in which a waiter must confirm a hand-over: not more than its lease, because the waiter may be dead.
local function time_to_confirm(info)
  local lease = string.match(info, '@field.lease@([1-9]%d*)')
  return lease and tonumber(lease) < HANDOVER_CONFIRMATION and lease or '@default.handover_confirmation@'
end

-- Grants the lock to a waiter for the time to confirm. The field `since` of its record becomes the time of the grant. The message
-- has the fencing number, the server's time and the ms to confirm, so that the waiter need not ask.
local function hand_over_to(waiter, info, ms, requested, arrival)
  local now = now_us()  -- inline
  local begun = string.gsub(info, '@field.since@%d+', '@field.since@' .. string.format('%.0f', now / 1000), 1)
  local joined = arrival_of(arrival)  -- inline
  local fence = grant(waiter, begun, ms, requested, joined, true)  -- inline
  notify(waiter, 'yours ' .. fence .. ' ' .. string.format('%.0f', now) .. ' ' .. ms)  -- inline
end

-- The same for a waiter that has just left the queue, if it is alive. Returns whether it is.
--
-- The message to the new holder comes last. The message starts a job, and a script cannot take back a message: no command that
-- could fail may follow. And a server sends the last message first (seen with Redis 7), so no watching waiter wakes up before the
-- new holder.
local function admit(waiter, arrival)
  local info = redis.call('HGET', WAITERS, waiter) or ''
  local requested = remove_waiter_record(waiter)  -- inline
  local alive = is_alive(waiter, arrival)  -- inline
  if alive then
    local ms = time_to_confirm(info)  -- inline
    if not MULTI_HOLDER then
      have_hand_over_watched(ms)  -- inline
    end
    hand_over_to(waiter, info, ms, requested, arrival)  -- inline
  end
  return alive
end

-- Grants the lock to the first live waiter, or to as many waiters as the lock has room for. The grant to a waiter lasts for its
-- time to confirm; the grant to the caller lasts for the caller's ttl. Returns the number of admitted waiters, and the caller's
-- fencing number.
--
-- A dead waiter has no subscriber, but a waiter that has just arrived has none either. After as many waiters as it may examine, the
-- function tells the next few to ask at once; their requests go on from there.
local function admit_waiters(caller, caller_info, caller_ttl)
  local admitted, caller_fence = 0, nil
  while may_examine > 0 do
    may_examine = may_examine - 1
    local waiter, arrival = pop_admissible_waiter()
    if not waiter then
      break
    end
    if waiter == caller then
      caller_fence = grant(caller, caller_info, caller_ttl, remove_waiter_record(waiter), arrival_of(arrival))
      announce_next(caller_ttl)
      admitted = admitted + 1
    elseif admit(waiter, arrival) then
      admitted = admitted + 1
    end
    if admitted > 0 and not MULTI_HOLDER then
      return admitted, caller_fence
    end
  end
  if may_examine == 0 then
    for _, waiter in ipairs(redis.call('ZRANGE', QUEUE, 0, 9)) do
      tell(QUEUE, waiter, 'look 0')
    end
  end
  return admitted, caller_fence
end

-- Admits as many waiters as possible. A caller that stays in the queue also watches their confirmations, because every waiter
-- before the caller may be dead.
local function hand_over(caller, caller_info, caller_ttl)
  local admitted, caller_fence = admit_waiters(caller, caller_info, caller_ttl)
  if admitted > 0 and not caller_fence then
    if MULTI_HOLDER then
      have_hand_over_watched(HANDOVER_CONFIRMATION)
    end
    if caller then
      notify(caller, 'claim ' .. HANDOVER_CONFIRMATION)
    end
  end
  return admitted, caller_fence
end

-- When this queue last left the lock to others (foreign clients, or the other exclusive kind), and when a waiter of this queue
-- first had the lock again; 0: never.
local function last_turn_of_others()
  local times = redis.call('HMGET', WAITERS, '#left', '#took')
  return tonumber(times[1]) or 0, tonumber(times[2]) or 0
end

-- The events of what an owner did itself: one that does nothing may be asked or forced all the same.
local BY_OWNER = {['@kind.acquired@'] = true, ['@kind.confirmed@'] = true, ['@kind.released@'] = true, ['@kind.lost@'] = true,
  ['@kind.renewed_late@'] = true}

-- Whether the store ended the hold of an owner because its client is dead. Only a store that knows which clients live notes that.
local function is_known_dead(owner)
  local ended = redis.call('HGET', WAITERS, '#ended')
  return ended and string.find(ended, '\0' .. owner .. '\0', 1, true)
end

-- Whether a hand-over of the last SILENCE_MEMORY was not confirmed, because its waiter is stopped, or may be. A dead waiter that
-- the store knows as such is no sign of others that are silent.
local function was_not_taken()
  local events, seen = redis.pcall('LRANGE', EVENTS, 0, -1), {}
  for i = #events, 1, -1 do
    local time, event, owner = string.match(events[i], '^(%d+)[%d.]*%z([%l_]+)%z(%Z*)')
    local to = string.match(events[i], '%z@word.to@%z(%Z*)') or string.find(events[i], CLAIM, 1, true) and owner
    if to and not seen[to] and not holds(to) and not is_known_dead(to) then
      return math.abs(now_us() - tonumber(time)) < SILENCE_MEMORY
    end
    if BY_OWNER[event] then
      seen[event == '@kind.released@' and string.match(events[i], '%z@word.owner@%z(%Z*)') or owner] = true
    end
  end
end

-- Grants a lock that has room to a caller that waits behind others, which may be silent. The others keep their places. nil: the
-- caller is not in the queue.
local function grant_past_silent(caller, caller_info, caller_ttl)
  local arrival = redis.call('ZSCORE', QUEUE, caller)
  if not arrival then
    return nil
  end
  redis.call('ZREM', QUEUE, caller)
  local fence = grant(caller, caller_info, caller_ttl, remove_waiter_record(caller), arrival_of(arrival))
  if REQUESTED_MODE == 'read' then
    hand_over()  -- a silent reader keeps no reader out
  end
  announce_next(caller_ttl)
  return fence
end

-- Like hand_over, after a recent hand-over that was not confirmed, so that the first waiters may be silent too: the first waiter
-- that asks gets the lock. The others at both ends of the queue are told to ask.
local function hand_over_past_silent(caller, caller_info, caller_ttl)
  local fence = caller and grant_past_silent(caller, caller_info, caller_ttl)
  if fence then
    return 1, fence
  elseif call_waiters() > 0 then
    return 0
  end
  return hand_over(caller, caller_info, caller_ttl)
end

-- Like hand_over, for a lock that the caller found free. The first such hand-over ends the turn of others. A lock that foreign
-- clients take later, while the queue is empty, is no part of that turn.
local function hand_over_free_lock(caller, caller_info, caller_ttl)
  local is_silent = can_admit_first() and was_not_taken() and not freeze_is_next()
  local admit = is_silent and hand_over_past_silent or hand_over
  local admitted, caller_fence = admit(caller, caller_info, caller_ttl)
  if admitted > 0 then
    local left, took = last_turn_of_others()
    if left > took then
      store_time('#took')
    end
  end
  return admitted, caller_fence
end

-- Whether a foreign client waits: on the lock's channel, or as the first waiter of Redisson's fair lock, which listens on another
-- channel. `own_subscribers`: how many subscribers of the lock's channel are rlock processes.
local function foreign_client_waits(own_subscribers)
  if CHANNEL == '' then
    return false
  elseif has_more_subscribers(CHANNEL, own_subscribers) then
    return true
  end
  local fair = NAME == 'lock' and redis.call('LINDEX', FAIR, 0)
  return fair and has_more_subscribers(CHANNEL .. ':' .. fair, 0)
end

-- The waiter of the other exclusive kind whose turn it is when the lock is free: the first waiter that listens, or the next one,
-- if the first had its turn and still waits. nil: there is none.
local function waiter_of_other_kind()
  local waiters = OTHER_QUEUE ~= QUEUE and redis.pcall('ZRANGE', OTHER_QUEUE, 0, 49, 'WITHSCORES') or {}
  if #waiters == 0 or redis.call('EXISTS', LOCK) == 1 then
    return nil
  end
  local before, first, is_next = redis.call('HGET', WAITERS, '#offered'), nil, false
  for i = 1, #waiters, 2 do
    local waiter = waiters[i]
    if is_subscribed(waiter) then
      if is_next or not before then
        return waiter
      end
      first = first or waiter
    elseif not is_alive(waiter, waiters[i + 1]) then
      redis.call('ZREM', OTHER_QUEUE, waiter)
    end
    is_next = is_next or waiter == before
  end
  return first
end

local FOREIGN = '1'  -- the value of RESERVED for foreign clients; another value names a waiter of the other kind

-- Every third hand-over leaves the lock to foreign clients that wait for it, or to a waiter of the other exclusive kind, because
-- a queue that is never empty would starve them. But foreign clients starve the queue as well, because a client that has just
-- unlocked may lock again before any message arrives. So after such a turn the queue keeps the lock for as long as the turn took,
-- at most LONGEST_PREFERENCE. Returns the value for RESERVED; nil: the lock stays with this queue.
local function turn_of_others(own_subscribers)
  local other = waiter_of_other_kind()
  if redis.call('EXISTS', QUEUE) == 0 then
    return other
  end
  local foreign = foreign_client_waits(own_subscribers)
  if not foreign and not other or MULTI_HOLDER and not can_admit_first() then
    return nil
  end
  local turn = redis.call('HINCRBY', WAITERS, '#turn', 1)
  redis.call('PEXPIRE', WAITERS, QUEUE_MEMORY)
  local left, took = last_turn_of_others()
  if turn % 3 ~= 0 or left ~= 0 and now_us() - took < math.min(took - left, LONGEST_PREFERENCE) then
    return nil
  elseif freeze_is_next() then
    return nil
  end
  return other and (turn % 6 == 0 or not foreign) and other or FOREIGN
end

-- Leaves the free lock to foreign clients or to a waiter of the other exclusive kind. False: no waiter of this queue listens and
-- could look again after foreign clients.
local function leave_to_others(whose)
  local ms = whose == FOREIGN and FOREIGN_TURN or KIND_TURN
  if notify_first('look ' .. ms) then
    store_time('#left')
  elseif whose == FOREIGN or redis.call('EXISTS', QUEUE) == 1 then
    return false
  end
  if whose ~= FOREIGN then
    store_note('#offered', whose)
  end
  log_pending_release()
  redis.call('SET', RESERVED, whose, 'PX', ms)
  announce_free()
  if whose == FOREIGN then
    return true
  end
  if redis.call('EXISTS', QUEUE) == 0 then
    for i, waiter in ipairs(ends_of_line(OTHER_QUEUE, 0)) do  -- because `whose` may be stopped
      if waiter ~= whose then
        tell(OTHER_QUEUE, waiter, 'look ' .. KIND_TURN + i * WATCH_STEP)
      end
    end
  end
  notify(whose, 'look 0')
  return true
end

-- The index in holders() of the first holder without a record. Such a holder is a foreign client, which sends no
-- message to an owner's channel when it releases the lock.
local function find_foreign_holder(found)
  for i = 1, #found, 3 do
    if redis.call('HEXISTS', HOLDER, found[i]) == 0 then
      return i
    end
  end
end

-- Tells the first waiter when to ask again, after a release that left too little room for it. The other holders may end without a
-- message to that waiter.
local function notify_first_of_expiry()
  if redis.call('EXISTS', QUEUE) == 0 then
    return
  end
  local change = next_expiry_ms()
  if find_foreign_holder(holders()) then
    notify_first('look 0')
  elseif change >= 0 and change < LOOK_AGAIN_AFTER then
    notify_first('look ' .. change)
  end
end

-- Passes on a lock that was just released: to the next rlock waiter or to others. Messages come last, because a script cannot
-- take back a message. Returns how many rlock waiters of this queue were admitted.
local function pass_on(own_subscribers)
  local whose = turn_of_others(own_subscribers)
  if whose and leave_to_others(whose) then
    return 0
  end
  local admitted = hand_over()
  log_pending_release()
  if MULTI_HOLDER and admitted == 0 then
    notify_first_of_expiry()
  end
  local other = admitted == 0 and redis.call('EXISTS', QUEUE) == 0 and waiter_of_other_kind()
  if other then
    leave_to_others(other)
  elseif MULTI_HOLDER or admitted == 0 then
    announce_free()
  end
  return admitted
end

-- Tells the new first waiter to look. The first waiter polls for all waiters, and listens for foreign clients if the holder is
-- one. Behind an rlock holder it need not poll.
local function notify_new_first()
  local change = next_expiry_ms()
  local may_rest = not MULTI_HOLDER and change > 0 and not find_foreign_holder(holders())
  notify_first('look ' .. (may_rest and change or 0))
  announce_next(change)
end

-- Admits waiters if the lock is free. Returns how many were admitted.
local function admit_if_free()
  local is_free = redis.call('EXISTS', RESERVED) == 0 and (MULTI_HOLDER or admits(REQUESTED_MODE))
  return is_free and hand_over_free_lock() or 0
end

-- The same for a caller whose request has another purpose. An error here, such as a foreign type at one of the keys, must not
-- become the reply to the caller.
local function try_admit_waiters()
  pcall(admit_if_free)
end

-- Remembers that an owner has left the queue, so that the same request sent twice gets the same reply. Keeps only the last few
-- departures.
local function remember_leaver(owner)
  local gone = redis.call('HGET', WAITERS, '#gone') or '\0'
  store_note('#gone', string.sub(gone .. owner .. '\0', -LEAVERS_SIZE))
end

-- The mark before the name of an owner that has left before its first request came.
local UNSEEN = '?'

-- `mark`: UNSEEN or nil.
local function has_left_queue(mark)
  local gone = redis.pcall('HGET', WAITERS, '#gone')
  return type(gone) == 'string' and string.find(gone, '\0' .. (mark or '') .. OWNER .. '\0', 1, true)
end

-- Removes OWNER from the queue; false: OWNER was not in the queue.
local function leave_queue()
  local position = redis.call('ZRANK', QUEUE, OWNER)
  if not position then
    return false
  end
  redis.call('ZREM', QUEUE, OWNER)
  remove_waiter_record(OWNER)
  remember_leaver(OWNER)
  if admit_if_free() == 0 and position == 0 then
    notify_new_first()
  end
  return true
end

-- The reply to an owner that does not hold the lock: Lost of core/lock/calls.h, but for its time.
local function loss_reply()
  local other = holders()
  if MULTI_HOLDER and REQUESTED_MODE ~= 'write' and other[3] ~= 'write' then
    other = {}  -- another reader beside OWNER has taken nothing from it
  end
  local kind = redis.call('EXISTS', LOCK) == 1 and kind_at_key(NAME) or NAME
  local field = kind ~= NAME and kind or lost_content or other[1] and '@loss.held@' or '@loss.none@'
  local info_of_other = other[1] and redis.call('HGET', HOLDER, other[1]) or false
  return {'lost', field, other[1] or false, info_of_other, redis.call('HGET', FORCE, OWNER)}
end

-- loss_reply(), after the log has recorded the loss. `info`: about OWNER, if the log must record the loss even when it no
-- longer knows OWNER; then `result` has more words about the run.
local function lost_reply(info, result)
  local reply = loss_reply()
  local known = holds_by_event_log()
  if known or known == nil and info then
    local about = info and '\0@word.info@\0' .. info .. result or result == UNUSED and UNUSED or ''
    log_trouble('@kind.lost@\0' .. OWNER .. '\0@word.what@\0' .. reply[@lost.what@] .. '\0@word.by@\0' .. (reply[@lost.requester@] or '')
        .. '\0@word.holder@\0' .. (reply[@lost.owner@] or '') .. about, info and math.max(TROUBLE_MEMORY, history_of(info)))
  end
  return reply
end
