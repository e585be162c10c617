-- force: make the owner give the lock up, step by step (core/lock/calls.h, Force; ForceStep in core/lock/requests.h).
--
--   returns  Held, Broken, Changed, Free, Other
--
-- The other steps take the lock away only if --min-hold keeps it after the end of its job. They change nothing of a freeze, which
-- has no job: only 'take' ends it before its time.
local REQUESTER, STEP, REQUEST_TTL = ARGV[@force.requester@], ARGV[@force.step@], tonumber(ARGV[@force.request_ttl@])

local held = (redis.call('EXISTS', LOCK) == 0 or kind_at_key(NAME) == NAME) and holds(OWNER)
if not held then
  return not_held_reply()
end
local info = redis.call('HGET', HOLDER, OWNER)

-- Whether only --min-hold keeps the lock: the release then marks the record of the owner.
local function job_is_over()
  if not info or not string.find(info, '@field.over@1', 1, true) then
    return false
  end
  local records = redis.call('HGETALL', HOLDER)
  for i = 1, #records, 2 do
    if records[i + 1] == OWNER and string.sub(records[i], 1, 5) == 'hold:' then
      return false
    end
  end
  return true
end

-- Takes the lock away. The request stays, so that a holder that wakes up later learns the requester.
local function force_release(over)
  -- This comes first: a full memory refuses some commands of remove_holder(), but not after a write that it allows.
  forget_owner(OWNER)
  remove_holder(OWNER)
  store_request(REQUESTER, REQUEST_MEMORY)
  pending_release = '@kind.forced@\0' .. string.gsub(OWNER, '%z', '?') .. '\0@word.by@\0' .. REQUESTER
  notify(OWNER, 'force')
  pass_on(0)
  return {'broken', OWNER, held, info, over}
end

-- Stores and publishes the request: a holder that does not listen yet sees it at its next renewal.
local function request_release()
  if STEP == 'join' then
    check_keys_of_grant()  -- because the requester is a run, which begins next
  end
  local earlier = redis.call('HGET', FORCE, OWNER)
  if earlier ~= REQUESTER and not (earlier and STEP == 'join') then
    store_request(REQUESTER, REQUEST_TTL)
    log_trouble('@kind.asked@\0' .. OWNER .. '\0@word.by@\0' .. REQUESTER)
  end
  return notify(OWNER, 'force')
end

-- Refuses the owner's renewals. A hold without a ttl would never end, so it gets the lease of its owner as its ttl. The record of
-- a dead owner may have ended before its hold.
local function revoke()
  local lease = tonumber(info and string.match(info, '@field.lease@(%d+)')) or select(2, holds_by_event_log()) or 0
  if lease > 0 and (remaining_ms(OWNER) < 0 or next_expiry_ms() < 0) then
    set_ttl(OWNER, lease)
  end
  store_request(REQUESTER, math.max(REQUEST_MEMORY, remaining_ms(OWNER) + REQUEST_TTL))
  redis.call('HSET', FORCE, 'revoked:' .. OWNER, '1')
end

if STEP == 'take' or job_is_over() then
  return force_release(STEP == 'take' and not job_is_over() and 0 or 1)
end
local heard = 0
if info and string.find(info, '@field.freeze@', 1, true) then
  -- no process could heed the request
elseif STEP == 'ask' or STEP == 'join' then
  heard = request_release()
elseif STEP == 'revoke' then
  revoke()
end
local stopped_at = tonumber(redis.call('HGET', FORCE, 'stops:' .. OWNER))
local ms_since_stop = stopped_at and math.max(0, math.floor(now_us() / 1000) - stopped_at) or -1
local is_rlock = info or is_subscribed(OWNER) or holds_by_event_log()
return {'held', OWNER, held, info, heard, remaining_ms(OWNER), ms_since_stop, is_rlock and 1 or 0}
