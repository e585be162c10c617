-- renew: push back the expiry of a lock that is still ours.
--
--   ARGV[6]  ttl in milliseconds; 0 only asks
--   ARGV[7]  hold, as it was acquired, for which is asked; '': whichever the owner has
--   ARGV[8]  'stopping': the owner has heard that the lock is wanted from it, and stops its job
--
--   returns  {'kept', who wants it from us or false, time}
--            {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, who wanted it from us
--             or false, time}
--            {'lost', 'revoked', false, false, who wants it from the owner or false, time}    it ends with its ttl
--            {'lost', 'released', false, false, who wants it from the owner or false, time}   that hold was let go of,
--                                          or never was; the owner has another; nothing was changed
--
-- The time is the server's, in microseconds: the ttl runs out by that.
--
-- Never re-creates a key that is gone: somebody may have worked under it meanwhile. Never shortens: an outer
-- hold may count on more. PEXPIRE, because it is allowed when memory is full. A question (ttl 0) changes nothing.
local TTL = tonumber(ARGV[6])
local time = string.format('%.0f', now())
if not holds(OWNER) then
  local answer = lost()
  answer[6] = time
  if TTL > 0 then
    leave_it_to_the_next()
  end
  return answer
end

-- A hold is gone where the owner's record is there and does not know it. Where the record was lost it is believed, also
-- if others have written to it since: what it stops by mistake is a job that nobody else is in the way of, and what it
-- lets go on by mistake has the lock of its owner around it.
local function was_let_go(hold)
  local known = hold ~= '' and redis.call('HMGET', HOLDER, OWNER, 'hold:' .. hold)
  return known and known[1] and not known[2]
end

if was_let_go(ARGV[7] or '') then
  return {'lost', 'released', false, false, redis.call('HGET', FORCE, OWNER), time}
end

if TTL > 0 and is_revoked() then
  return {'lost', 'revoked', false, false, redis.call('HGET', FORCE, OWNER), time}
end

-- Who renews every third of its lease has two thirds left.
local function tell_if_late(left)
  local info = left * 3 < TTL and redis.call('HGET', HOLDER, OWNER)
  local lease = info and string.find(info, 'auto=1$') and tonumber(string.match(info, 'lease=(%d+)'))
  if lease and left * 3 < lease then
    tell_trouble('renewed_late\0' .. OWNER .. '\0left\0' .. left)
  end
end

if ARGV[8] == 'stopping' then
  note_stopping()
end
if TTL > 0 then
  local left = extend(OWNER, TTL)
  if left then
    keep_records(TTL)
    redis.call('PEXPIRE', FENCE, FENCE_MEMORY)
    tell_if_late(left)
  end
  -- A waiter behind one that was killed hears nothing of that. A holder that shares the lock renews it anyway.
  if SHARES and redis.call('EXISTS', QUEUE) == 1 then
    leave_it_to_the_next()
  end
end
return {'kept', redis.call('HGET', FORCE, OWNER), time}
