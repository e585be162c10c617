-- release: let go of a lock that is still ours and pass it on, or leave the queue.
--
--   ARGV[5]  hold, as it was acquired
--   ARGV[6]  how many of those who listen on the lock's channel are ours; -1: nobody is told and nothing is passed on
--   ARGV[7]  milliseconds for which the lock is to stay taken though its job is over, if no hold is left; or 0
--   ARGV[8]  milliseconds for which the job's success is to be remembered; or 0
--
--   returns  {'released'}
--            {'still_held', count}   another hold of the same owner is left
--            {'left'}                it was not ours yet, and we wait no longer
--            {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, request or false}
--
-- Sent twice it answers the same: the first time takes the hold off the record and leaves a note in the
-- stream, the second finds the one gone or the other there. The first write is HDEL, which a full memory
-- allows, and after one write it allows the others too.
local HOLD, EARS, KEEP, REMEMBER = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

local function was_released()
  for _, entry in ipairs(redis.call('XREVRANGE', EVENTS, '+', '-', 'COUNT', 64)) do
    local fields = entry[2]
    if fields[1] == 'released' and fields[2] == HOLD then
      return true
    end
  end
  return false
end

-- For as long as anybody may have waited meanwhile, if that is longer: they share it.
local function remember_success()
  redis.call('SET', DONE, string.format('%.0f', now()), 'PX', math.max(REMEMBER, WAITING))
  redis.call('PUBLISH', DONE, 'done')
end

local held = holds(OWNER)
if not held then
  return leave_the_line() and {'left'} or was_released() and {'released'} or lost()
end
-- Where the record was lost the owner may let go of what is its own; a nested hold that nobody knows may never
-- have been, and must not take the outer one with it.
if redis.call('HDEL', HOLDER, 'hold:' .. HOLD) == 0 and (HOLD ~= OWNER or redis.call('EXISTS', HOLDER) == 1) then
  return {'still_held', held}
end
redis.call('XADD', EVENTS, 'MAXLEN', '~', 128, '*', 'released', HOLD, 'owner', OWNER)
redis.call('PEXPIRE', EVENTS, NOTE_MEMORY)
if REMEMBER > 0 then
  remember_success()
end
if held == 1 and KEEP > 0 then
  local info = redis.call('HGET', HOLDER, OWNER) or ''
  redis.call('HSET', HOLDER, OWNER, (info:gsub('auto=1$', 'auto=0')))  -- nobody renews it any more
  keep_records(KEEP)
  expire(OWNER, KEEP)
  tell_first('look ' .. KEEP)
  return {'released'}
end
local left = leave(OWNER)
if left > 0 then
  if SHARES then
    hand_over()  -- who wrote and goes on reading lets other readers in
    say_free()
  end
  return {'still_held', left}
end
forget(OWNER)
if EARS >= 0 then
  pass_on(EARS)
end
return {'released'}
