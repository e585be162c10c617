-- acquire: take a free lock, confirm one that was handed over, or join the queue (core/lock/calls.h, Acquire).
--
--   returns  Granted; Done, Denied, Other, Differs, Replaced: nothing was changed, but with Done OWNER holds nothing and has left the queue;
--            Busy with parts that are false where they are missing; Lost, to WAIT_MODE 'again' alone: see loss_reply() in
--            lib/queue.lua; nothing was changed, and no loss logged: OWNER may hold the lock as another kind, and its own requests
--            log a loss
--
-- A request that is sent twice counts once: an owner is fresh for each acquisition, so a hold that exists already comes
-- from the same request.
local @unpack.acquire@

-- The most frequent case: the lock is free, no client waits for it, and no success of another job counts.
local is_free = WAIT_MODE ~= 'again' and WAIT_MODE ~= 'latest' and SUCCESS_MAX_AGE == '0' and TICKET == '0'
if NEEDS_NO_KEY then
  is_free = is_free and redis.call('EXISTS', LOCK, QUEUE, RESERVED) == 0
else
  if is_free and redis.call('EXISTS', QUEUE, RESERVED) == 0 then
    local own = holds(OWNER)  -- inline
    is_free = not own
    if is_free then
      is_free = admits(REQUESTED_MODE)  -- inline
    end
  else
    is_free = false
  end
end
if is_free and RIGHTS == 'unchecked' then
  local fence = grant(OWNER, INFO, TTL, REQUESTED_MODE)  -- inline
  return {'granted', fence, 1, 0}
end

-- Otherwise.
if is_free then
  return denied_reply() or {'granted', grant(OWNER, INFO, TTL, REQUESTED_MODE), 1, 0}
end

-- Otherwise.
-- Confirms a hand-over to OWNER, or a request that is sent twice.
local function confirm(held)
  if redis.call('HSET', HOLDER, OWNER, INFO) == 1 then
    redis.call('HSET', HOLDER, 'hold:' .. OWNER, OWNER)  -- the record was lost; this request is for the outer hold
  end
  return held
end

local function granted_reply(held)
  local is_extended = extend(OWNER, TTL)  -- false: a claim that is as long as the lease, in the same millisecond
  if is_extended or redis.call('PTTL', HOLDER) < 0 then
    extend_records(TTL)  -- or else the record was lost, and this request has written it again
  end
  log_confirmation()
  if is_extended then
    announce_next(TTL)  -- last, because the next waiter then prepares its job, which takes processor time from this owner
  end
  local fence, agreed = fence_of(OWNER)
  return {'granted', fence, held, agreed}
end

local held = holds(OWNER)
if held and HOLD_ID == OWNER and SUCCESS_MAX_AGE == '0' and not is_revoked() then
  return granted_reply(confirm(held))
end

-- Otherwise.
-- Adds a nested hold. A record without its count would end the outer hold too early, so the count is written first.
local function reenter(held)
  if HOLD_ID == OWNER then
    return granted_reply(confirm(held))
  elseif redis.call('HEXISTS', HOLDER, 'hold:' .. HOLD_ID) == 0 then
    local reason, denied = reentry_obstacle(OWNER), RIGHTS ~= 'unchecked' and denied_reply()
    if reason or denied then
      return denied or {'other', reason}
    end
    held = add_hold(OWNER)
    local read = REQUESTED_MODE == 'read' and {'read:' .. HOLD_ID, OWNER} or {}
    redis.call('HSET', HOLDER, 'hold:' .. HOLD_ID, OWNER, unpack(read))
  end
  return granted_reply(held)
end

local QUEUES = WAIT_MODE == 'wait' or WAIT_MODE == 'latest' or WAIT_MODE == 'first'

-- The newest waiter with --latest: its ticket, owner and info; nil: there is none, or the server no longer knows it.
local function latest_waiter()
  return string.match(redis.call('HGET', WAITERS, '#latest') or '', '^(%d+)%z(%Z*)%z(.*)$')
end

-- Makes OWNER, which has just joined the queue, the newest waiter with --latest. The newest waiter before OWNER leaves the queue
-- and is told to ask; the reply says why. The event log knows the replacement for longer than the queue.
local function replace_latest(ticket)
  local _, earlier = latest_waiter()
  redis.call('HSET', WAITERS, '#latest', ticket .. '\0' .. OWNER .. '\0' .. INFO)
  local position = earlier and earlier ~= OWNER and redis.call('ZRANK', QUEUE, earlier)
  if position then
    redis.call('ZREM', QUEUE, earlier)
    remove_waiter_record(earlier)
    remember_leaver(earlier)
    log_trouble('@kind.replaced@\0' .. earlier .. '\0@word.by@\0' .. INFO)
    notify(earlier, 'look 0')
    if position == 0 and redis.call('ZRANGE', QUEUE, 0, 0)[1] ~= OWNER then
      notify_new_first()
    end
  end
end

-- The info about a newer waiter that, by the event log, replaced OWNER or got the lock after OWNER arrived; nil: there is none.
-- OWNER may have been stopped for so long that the queue no longer knows OWNER. An OWNER without a ticket has not got the reply
-- to its grant; it arrived at the time of that grant at the latest.
local function newer_in_event_log()
  local arrival = TICKET ~= '0' and tonumber(TICKET)
  for _, entry in ipairs(redis.call('LRANGE', EVENTS, 0, -1)) do
    local fence, info = string.match(entry, '^(%d+)%z.*%z@word.info@%z(%Z*)')
    if entry_has(entry, '@kind.replaced@', OWNER) then
      return string.match(entry, '%z@word.by@%z(%Z*)')
    elseif entry_has(entry, '@kind.acquired@', OWNER) or entry_has(entry, '@word.to@', OWNER) then
      arrival = arrival or tonumber(fence)
    elseif info and arrival and tonumber(fence) > arrival and string.find(info, '@field.latest@1', 1, true) then
      return info
    end
  end
end

-- The info about the newer waiter that has taken the place of OWNER; nil: OWNER is in the queue, or is the newest. A first
-- request that was delayed until OWNER had left the queue must not replace the waiters that came meanwhile.
local function replaced_by()
  if redis.call('ZSCORE', QUEUE, OWNER) then
    return nil
  end
  local ticket, latest, info = latest_waiter()
  if TICKET == '0' and (has_left_queue() or has_left_queue(UNSEEN)) then
    return info or ''
  elseif TICKET ~= '0' and ticket and latest ~= OWNER and tonumber(ticket) > tonumber(TICKET) then
    return info
  end
  return newer_in_event_log()
end

-- Who has taken from OWNER the claim under which no job has begun (thaw, force-unlock --now); nil: no operator has, OWNER is in the queue
-- again, or the log says already that no job began.
local function claim_taken_by()
  local events = redis.call('ZSCORE', QUEUE, OWNER) and {} or redis.pcall('LRANGE', EVENTS, 0, -1)
  for i = #events, 1, -1 do
    if entry_has(events[i], '@kind.forced@', OWNER) then
      return string.match(events[i], '%z@word.by@%z(%Z*)')
    elseif entry_has(events[i], '@kind.acquired@', OWNER) or entry_has(events[i], '@word.to@', OWNER)
        or entry_has(events[i], '@kind.unused@', OWNER) then
      return nil
    end
  end
end

-- The arrival of the last waiter whose score is its arrival less `offset`, because the server's clock may have been set back; 0: there
-- is none. And whether waiters with a smaller priority stand behind.
local function last_with(offset)
  local begin = now_us() - offset - PRIORITY_BAND / 2
  local last = tonumber(redis.call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2]) or -math.huge
  local are_behind = last >= begin + PRIORITY_BAND
  if are_behind then
    local place = redis.call('ZCOUNT', QUEUE, '-inf', '(' .. string.format('%.0f', begin + PRIORITY_BAND)) - 1
    last = place >= 0 and tonumber(redis.call('ZRANGE', QUEUE, place, place, 'WITHSCORES')[2]) or -math.huge
  end
  return last >= begin and math.floor(last) + offset or 0, are_behind
end

-- Notes that OWNER has joined in front of waiters that came before it. The next few tell enough of a line that does not move.
local function note_passed()
  local place = redis.call('ZRANK', QUEUE, OWNER)
  for _, waiter in ipairs(redis.call('ZRANGE', QUEUE, place + 1, place + WATCHERS)) do
    redis.call('HINCRBY', WAITERS, 'passed:' .. waiter, 1)
  end
end

-- Puts OWNER in the queue. Returns the position, the ticket, whether the queue did not know OWNER, and whether a message has missed
-- it. A stored ticket counts, because a reply that was lost may have told that ticket. A poll that would extend the memory of the
-- queue by little changes nothing, because a change costs a database a commit.
local function enqueue()
  local ticket, is_new, missed, extends = tonumber(TICKET), false, false, redis.call('PTTL', QUEUE) < LEAST_QUEUE_MEMORY
  if extends then
    redis.call('PEXPIRE', QUEUE, QUEUE_MEMORY)
  end
  local offset, passes = WAIT_MODE == 'first' and FREEZES_FIRST or (tonumber(PRIORITY) or 0) * PRIORITY_BAND, false
  if ticket == 0 then
    local last, are_behind = last_with(offset)
    local newest = WAIT_MODE == 'latest' and tonumber((latest_waiter())) or 0  -- the server's clock may have been set back
    ticket = math.max(last + 1, now_us(), newest + 1)
    passes = are_behind and WAIT_MODE ~= 'first'
  end
  if WAIT_MODE == 'latest' then
    check_keys_of_grant()
  end
  local score = string.format('%.0f', ticket - offset)
  if redis.call('ZADD', QUEUE, 'NX', score, OWNER) == 1 then
    redis.call('PEXPIRE', QUEUE, QUEUE_MEMORY)  -- at once, because HSET may be refused
    is_new, extends = true, true
    redis.call('HSET', WAITERS, OWNER, INFO, 'wish:' .. OWNER, REQUESTED_MODE)
    if WAIT_MODE == 'latest' then
      replace_latest(string.format('%.0f', ticket))
    end
    if passes then
      note_passed()
    end
  else
    local stored = redis.call('ZSCORE', QUEUE, OWNER)
    missed = stored % 1 ~= 0
    if missed then
      stored = math.floor(stored)
      redis.call('ZADD', QUEUE, string.format('%.0f', stored), OWNER)
    end
    ticket = arrival_of(stored)
    if redis.call('HEXISTS', WAITERS, OWNER) == 0 then  -- the record was lost
      redis.call('HSET', WAITERS, OWNER, INFO, 'wish:' .. OWNER, REQUESTED_MODE)
      extends = true
    end
  end
  if extends then
    redis.call('PEXPIRE', WAITERS, QUEUE_MEMORY)
  end
  return redis.call('ZRANK', QUEUE, OWNER), string.format('%.0f', ticket), is_new, missed
end

-- How many callers wait, if they are so many that OWNER must not join them; else nil. A caller with a ticket is in line already, and a waiter with --latest
-- takes the place of the one before it. Freezes and dead waiters do not count.
local function full_line()
  local most, listening, waiting = tonumber(MAX_WAITING), tonumber(LISTENING) or math.huge, 0
  if not most or TICKET ~= '0' or redis.call('ZCARD', QUEUE) < most or redis.call('ZSCORE', QUEUE, OWNER) then
    return nil
  end
  local _, replaced = latest_waiter()
  if WAIT_MODE == 'latest' and replaced and redis.call('ZSCORE', QUEUE, replaced) then
    return nil
  end
  local waiters = redis.call('ZRANGE', QUEUE, 0, -1, 'WITHSCORES')
  for i = 1, #waiters, 2 do
    local is_freeze, may_be_away = tonumber(waiters[i + 1]) < 0, i > 2 * listening
    if not is_freeze and (may_be_away or is_alive(waiters[i], waiters[i + 1])) then
      waiting = waiting + 1
    end
  end
  return waiting >= most and waiting or nil
end

-- The first waiter polls a lock whose holder may release it without a message to this queue.
local POLL_INTERVAL = 1000  -- ms

-- Whether the waiter must poll. A holder without a record may be a fair lock or spin lock of Redisson, which publish no release.
local function must_poll(position, info, ttl)
  return NAME == 'lock' and position == 0 and not info and (ttl < 0 or ttl > POLL_INTERVAL)
end

-- `ms`: until the lock may be had; nil: the kind knows. `is_holder`: OWNER has the lock, and joins no queue. `has_room`: the lock admits
-- OWNER, so the first waiter is to ask at once, if the lock admits it as well: it may be OWNER, which has just joined in front.
local function busy_reply(ms, is_holder, has_room)
  local position, ticket, is_new, missed = 0, '0', false, false
  local joins = QUEUES and not is_holder
  local full = joins and full_line() or nil
  if joins and not full then
    position, ticket, is_new, missed = enqueue()
  else
    position = redis.call('ZCARD', QUEUE)
  end
  local found = holders()
  -- The first waiter listens for foreign clients.
  local shown = MULTI_HOLDER and position == 0 and find_foreign_holder(found) or 1
  local info = found[shown] and redis.call('HGET', HOLDER, found[shown]) or false
  local ttl = ms or has_room and can_admit_first() and 0 or next_expiry_ms()
  local again = found[shown] and must_poll(position, info, ttl) and POLL_INTERVAL or false
  local time = QUEUES and string.format('%.0f', now_us()) or false
  -- A waiter that a message has missed may be the only one that lives, so it looks when the lock ends.
  local watch = missed and ttl >= 0 and ttl + steps_of(position) or is_new and position and ms_to_watch(position) or false
  return {'busy', ttl, found[shown] or '', found[shown + 1] or 0, info, position, ticket, again, time, watch, full and 0, full}
end

-- A holder of the other kind tells only the queue of its kind, so the waiters in this queue poll: the first waiter most often,
-- and the others because the waiters before them may be dead.
local function busy_with_other_kind_reply()
  local answer = busy_reply(redis.call('PTTL', LOCK))
  local owner, count = holder_of_other_kind()
  if owner then
    answer[@busy.owner@], answer[@busy.count@], answer[@busy.info@] = owner, count, redis.call('HGET', HOLDER, owner)
  end
  answer[@busy.again_in@] = (answer[@busy.place@] + 1) * POLL_INTERVAL
  return answer
end

-- The reply to a nested hold whose owner has the lock as another kind, and so would wait for itself; nil: the owner has not.
local function own_other_kind_reply()
  local kind = redis.call('EXISTS', LOCK) == 1 and kind_at_key(NAME)
  local is_own = kind and is_other_exclusive(kind)
      and (redis.call('HEXISTS', LOCK, OWNER) == 1 or redis.call('HEXISTS', LOCK, OWNER .. ':write') == 1)
  return is_own and {'other', kind} or nil
end

-- When the period of SUCCESS_MAX_AGE with that moment in it begins; nil: SUCCESS_MAX_AGE is a time. In microseconds.
local function period_begin(moment)
  local begin, next_begin, length = string.match(SUCCESS_MAX_AGE, '^(%d+) (%d+) (%d+)$')
  if not begin then
    return nil
  end
  begin, next_begin, length = begin * 1000, next_begin * 1000, length * 1000
  if moment >= begin and moment < next_begin then
    return begin
  end
  local known = moment < begin and begin or next_begin
  return known + math.floor((moment - known) / length) * length
end

-- How long ago another job succeeded, if that success counts for this caller; else nil. A caller that waited during that job
-- shares the success, however short SUCCESS_MAX_AGE is. The period of a caller that waited is that in which it came.
local function success_age()
  local done = SUCCESS_MAX_AGE ~= '0' and tonumber(redis.call('GET', DONE))
  if not done then
    return nil
  end
  local now, arrival = now_us(), TICKET ~= '0' and tonumber(TICKET)
  local begin = period_begin(arrival or now)
  local counts
  if begin then
    counts = done >= begin
  else
    counts = arrival and done > arrival or now - done < tonumber(SUCCESS_MAX_AGE) * 1000
  end
  return counts and math.max(0, math.floor((now - done) / 1000)) or nil
end

-- The reply if the user may not publish a success, which happens while the lock is still held: such a job must not start. Else
-- nil.
local function denied_done_channel()
  local may = SUCCESS_MAX_AGE ~= '0' and redis.acl_check_cmd
  local publish = SHARDED and 'spublish' or 'publish'
  return may and not may(publish, DONE, 'done') and {'denied', publish, DONE} or nil
end

-- The event of a release before a job has begun.
local function unused_release()
  return '@kind.released@\0' .. OWNER .. '\0@word.owner@\0' .. OWNER .. UNUSED
end

local done = success_age()
if done then
  if WAIT_MODE == 'again' then
    -- the outer job keeps the hold
  elseif held then
    remove_holder(OWNER)
    forget_owner(OWNER)
    pending_release = unused_release()
    pass_on(0)
  else
    leave_queue()
  end
  return {'done', done}
end
if held and is_revoked() then
  if WAIT_MODE == 'again' then
    return {'lost', '@loss.revoked@', false, false, redis.call('HGET', FORCE, OWNER)}
  end
  -- This request may be a late copy of the one that was granted, under which a job runs. So the hold ends with its ttl.
  return busy_reply(nil, true)
elseif held then
  return reenter(held)
end
if WAIT_MODE == 'again' then
  return own_other_kind_reply() or loss_reply()
end
local newer = WAIT_MODE == 'latest' and replaced_by()
if newer then
  return {'replaced', newer}
end
if TICKET ~= '0' then
  local requester = claim_taken_by()
  if requester and WAIT_MODE == 'first' then
    return {'replaced', requester}  -- an ended freeze must not begin again
  elseif requester then
    log_trouble('@kind.unused@\0' .. OWNER)
  end
  -- An operator may have asked for an earlier hold of OWNER, a hand-over that OWNER confirmed too late.
  redis.pcall('HDEL', FORCE, OWNER, 'revoked:' .. OWNER, 'stops:' .. OWNER)
end
if not admits(REQUESTED_MODE) then
  local answer = obstacle_reply()
  if answer and answer[1] == 'other' and is_other_exclusive(answer[@other.content@]) then
    return busy_with_other_kind_reply()
  elseif answer then
    return answer
  end
  redis.call('DEL', RESERVED)
  return busy_reply()
end

local reserved = redis.call('PTTL', RESERVED)
if reserved > 0 and redis.call('GET', RESERVED) ~= OWNER then
  return busy_reply(reserved)
end
local denied = RIGHTS ~= 'unchecked' and (denied_reply() or denied_done_channel())
if denied then
  return denied
end
local fence
if redis.call('EXISTS', QUEUE) == 1 then
  local admitted
  admitted, fence = hand_over_free_lock(OWNER, INFO, TTL)
end
if not fence and redis.call('EXISTS', QUEUE) == 0 and admits(REQUESTED_MODE) then
  fence = grant(OWNER, INFO, TTL, REQUESTED_MODE)
end
if fence then
  if reserved > 0 then
    redis.call('DEL', RESERVED)  -- the lock was reserved for OWNER
  end
  return {'granted', fence, 1, 0}
end
return busy_reply(nil, false, true)
