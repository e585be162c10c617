-- renew: extend a lock that OWNER still holds.
--
--   ARGV[6]  the ttl in milliseconds; 0: only check
--   ARGV[7]  the hold, as it was acquired; '': any hold of the owner
--   ARGV[8]  the purpose, or '':
--              confirm   the first renewal after a hand-over whose message has started the job
--              stopping  the owner has received a request for release, and stops its job
--
--   returns  {'kept', requester of the release or false, time}
--            {'lost', …, time}   see lost_reply() in lib/queue.lua
--            {'lost', 'revoked', false, false, requester of the release or false, time}    the hold ends with its ttl
--            {'lost', 'released', false, false, requester of the release or false, time}   this hold was released, or
--                                          never existed; the owner has another hold; nothing was changed
--
-- The time is the server's, in microseconds, because the ttl runs out by the server's clock.
--
-- Never makes a key that is gone, because another client may have had the lock meanwhile. Never shortens a ttl, because an
-- outer hold may need a longer one. Uses PEXPIRE, because a full memory allows it. A check (ttl 0) changes nothing.
local TTL, HOLD_ID, PURPOSE = tonumber(ARGV[6]), ARGV[7] or '', ARGV[8]
local time = string.format('%.0f', now_us())

-- Whether the hold was released: the owner's record exists and does not name the hold. If the record was lost, the hold counts,
-- even if other owners have written to the record since. A false "released" would stop a job that has no competitor; a false
-- "held" is covered by the outer hold.
local function is_released()
  local fields = HOLD_ID ~= '' and redis.call('HMGET', HOLDER, OWNER, 'hold:' .. HOLD_ID)
  return fields and fields[1] and not fields[2]
end

-- Logs a renewal that came later than RENEWALS_PER_TTL demands.
local function log_if_late(left)
  local info = left * RENEWALS_PER_TTL < TTL and redis.call('HGET', HOLDER, OWNER)
  local is_automatic = info and string.find(info, '@field.automatic@1', 1, true)
  local lease = is_automatic and tonumber(string.match(info, '@field.lease@(%d+)'))
  if lease and left * RENEWALS_PER_TTL < lease then
    log_trouble('@kind.renewed_late@\0' .. OWNER .. '\0@word.left@\0' .. left)
  end
end

local function extend_hold()
  local left = extend(OWNER, TTL)
  if left then
    extend_records(TTL)
    redis.call('PEXPIRE', FENCE, FENCE_MEMORY)
    if PURPOSE == 'confirm' then
      log_confirmation()
      announce_next(TTL)
    else
      log_if_late(left)
    end
  end
end

local loss = not holds(OWNER) and '@loss.none@' or is_released() and '@loss.released@'
    or TTL > 0 and is_revoked() and '@loss.revoked@'
if not loss then
  if PURPOSE == 'stopping' then
    note_stopping()
  end
  if TTL > 0 then
    extend_hold()
  end
  if not MULTI_HOLDER or TTL == 0 or redis.call('EXISTS', QUEUE) == 0 then
    return {'kept', redis.call('HGET', FORCE, OWNER), time}
  end
end

-- Otherwise.
if loss == '@loss.none@' then
  local reply = lost_reply()
  reply[6] = time
  if TTL > 0 then
    try_admit_waiters()
  end
  return reply
elseif loss then
  return {'lost', loss, false, false, redis.call('HGET', FORCE, OWNER), time}
end
-- A waiter behind a killed waiter gets no message about that death, so a renewal admits waiters.
try_admit_waiters()
return {'kept', redis.call('HGET', FORCE, OWNER), time}
