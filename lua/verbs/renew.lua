-- renew: extend a lock that OWNER still holds (core/lock/calls.h, Renew).
--
--   returns  Kept; Lost: see lost_reply() in lib/queue.lua. Revoked: the hold ends with its ttl. Released: this hold was released, or
--            never existed; the owner has another hold; nothing was changed
--
-- Never makes a key that is gone, because another client may have had the lock meanwhile. Never shortens a ttl, because an
-- outer hold may need a longer one. Uses PEXPIRE, because a full memory allows it. A check (ttl 0) changes nothing.
local TTL, HOLD_ID, PURPOSE = ARGV[@renew.ttl@], ARGV[@renew.hold_id@] or '', ARGV[@renew.purpose@]
local ONLY_CHECKS = TTL == '0'
local now = now_us()  -- inline
local time = string.format('%.0f', now)

local loss, requester
local left  -- ms that the hold had left, if the script has extended it
local is_known = holds(OWNER)  -- inline
if not is_known then
  loss = '@loss.none@'
else
  -- The hold was released if the owner's record exists and does not name the hold. If the record was lost, the hold counts, even
  -- if other owners have written to the record since. A false "released" would stop a job that has no competitor; a false "held"
  -- is covered by the outer hold.
  local fields = HOLD_ID ~= '' and redis.call('HMGET', HOLDER, OWNER, 'hold:' .. HOLD_ID)
  local released = fields and fields[1] and not fields[2]
  local requests = redis.call('HMGET', FORCE, OWNER, 'revoked:' .. OWNER)
  requester = requests[1]
  loss = released and '@loss.released@' or not ONLY_CHECKS and requests[2] and '@loss.revoked@'
end
if not loss then
  if PURPOSE == 'stopping' then
    note_stopping()  -- inline
  end
  if not ONLY_CHECKS then
    left = extend(OWNER, TTL)  -- inline
  end
  if left then
    extend_records(TTL)  -- inline
    redis.call('PEXPIRE', FENCE, '@default.fence_memory@')
  end
  local is_usual = not left or PURPOSE ~= 'confirm' and left * RENEWALS_PER_TTL >= tonumber(TTL)
  if MULTI_HOLDER then
    is_usual = is_usual and (ONLY_CHECKS or redis.call('EXISTS', QUEUE) == 0)
  end
  if is_usual then
    return {'kept', requester, time}
  end
end

-- Otherwise.
-- Logs a renewal that came later than RENEWALS_PER_TTL demands.
local function log_if_late()
  local info = left * RENEWALS_PER_TTL < tonumber(TTL) and redis.call('HGET', HOLDER, OWNER)
  local is_automatic = info and string.find(info, '@field.automatic@1', 1, true)
  local lease = is_automatic and tonumber(string.match(info, '@field.lease@(%d+)'))
  if lease and left * RENEWALS_PER_TTL < lease then
    log_trouble('@kind.renewed_late@\0' .. OWNER .. '\0@word.left@\0' .. left)
  end
end

if left and PURPOSE == 'confirm' then
  log_confirmation()
  announce_next(TTL)
elseif left then
  log_if_late()
end
if not loss and not MULTI_HOLDER then
  return {'kept', requester, time}
end

-- Otherwise.
if loss == '@loss.none@' then
  local reply = lost_reply()
  reply[@lost.at@] = time
  if not ONLY_CHECKS then
    try_admit_waiters()
  end
  return reply
elseif loss then
  return {'lost', loss, false, false, requester, time}
end
-- A waiter behind a killed waiter gets no message about that death, so a renewal admits waiters.
if not ONLY_CHECKS and redis.call('EXISTS', QUEUE) == 1 then
  try_admit_waiters()
end
return {'kept', requester, time}
