-- release: let go of a lock that is still ours and pass it on, or leave the queue.
--
--   ARGV[6]  hold, as it was acquired
--   ARGV[7]  how many of those who listen on the lock's channel are ours; -1: nobody is told and nothing is passed on
--   ARGV[8]  milliseconds for which the lock is to stay taken though its job is over, once no hold is left; or 0
--   ARGV[9]  milliseconds for which the job's success is to be remembered; or 0
--
--   returns  {'released', how many of those who waited have come in}
--            {'still_held', count}   another hold of the same owner is left
--            {'left'}                it was not ours yet, and we wait no longer
--            {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, who wanted it from us or
--             false}
--
-- Sent twice it answers the same: the first request takes the hold off the record and leaves a note in the
-- trail, or a note about who left the queue; the second request finds the note. The first write is HDEL, which a full
-- memory allows, and after one write it allows the others too.
local HOLD, EARS, KEEP, REMEMBER = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])

local function moment_in(ms)
  return math.floor(now() / 1000) + ms
end

-- The answer to an earlier release of a hold, by its note in the trail; nil: there is none.
local function earlier_answer(hold)
  for _, entry in ipairs(redis.call('LRANGE', EVENTS, 0, -1)) do
    if says(entry, 'released', hold) then
      local left = string.match(entry, '%zleft%z(%d+)$')
      return left and {'still_held', tonumber(left)} or {'released', string.find(entry, '\0to\0', 1, true) and 1 or 0}
    end
  end
end

-- For as long as anybody may have waited meanwhile, if that is longer: they share it.
local function remember_success()
  redis.call('SET', DONE, string.format('%.0f', now()), 'PX', math.max(REMEMBER, WAITING))
  if SHARDED then
    redis.call('SPUBLISH', DONE, 'done')
  else
    redis.call('PUBLISH', DONE, 'done')
  end
end

-- What is let go of before the last keeps its wish with the record. PEXPIRE: that may be new, should it have been lost.
local function leave_a_wish(ms)
  local until_then = moment_in(ms)
  local noted = tonumber(redis.call('HGET', HOLDER, 'keep:' .. OWNER)) or 0
  redis.call('HSET', HOLDER, 'keep:' .. OWNER, string.format('%.0f', math.max(noted, until_then)))
  redis.call('PEXPIRE', HOLDER, math.max(redis.call('PTTL', HOLDER), ms))
end

-- ms for which the lock is to stay taken, by whoever wanted that longest
local function longest_wish()
  local noted = tonumber(redis.call('HGET', HOLDER, 'keep:' .. OWNER))
  return noted and math.max(KEEP, noted - moment_in(0)) or KEEP
end

local held = holds(OWNER)
if not held then
  if leave_the_line() then
    return {'left'}
  end
  local earlier = earlier_answer(HOLD)
  if earlier then
    return earlier
  elseif has_left_the_line() and had() == nil then
    return {'left'}
  end
  local answer = lost()
  if EARS >= 0 then
    leave_it_to_the_next()
  end
  return answer
end
-- A hold that the record does not name was released before, or was never granted, if the owner has a record. If the
-- owner's record was lost the hold is believed; but a nested hold takes the last one only if the outer one was released.
if redis.call('HDEL', HOLDER, 'hold:' .. HOLD) == 0 then
  local earlier = earlier_answer(HOLD)
  local only_outer_left = HOLD ~= OWNER and held == 1 and not earlier_answer(OWNER)
  if earlier or only_outer_left or redis.call('HEXISTS', HOLDER, OWNER) == 1 then
    return earlier or {'still_held', held}
  end
end
if SHARES and redis.call('HDEL', HOLDER, 'read:' .. HOLD) == 1 then
  WISH = 'read'  -- whatever its owner has: who lets go by a token may not know
end
parting = 'released\0' .. HOLD .. '\0owner\0' .. OWNER
if REMEMBER > 0 then
  remember_success()
end
if held > 1 and KEEP > 0 then
  leave_a_wish(KEEP)
end
local stay = held == 1 and longest_wish() or 0
if stay > 0 then
  local info = redis.call('HGET', HOLDER, OWNER) or ''
  redis.call('HSET', HOLDER, OWNER, (info:gsub('auto=%d$', 'over=1\nauto=0')))  -- its job is over, and no client renews it
  keep_records(stay)
  expire(OWNER, stay)
  tell_parting()
  tell_first('look ' .. stay)
  return {'released'}
end
local left = leave(OWNER)
if left > 0 then
  parting = parting .. '\0left\0' .. left
  tell_parting()
  if SHARES and EARS >= 0 then
    hand_over()  -- who wrote and goes on reading lets other readers in
    say_free()
  end
  return {'still_held', left}
end
forget(OWNER)
local let_in = EARS >= 0 and pass_on(EARS) or 0
tell_parting()
return {'released', let_in}
