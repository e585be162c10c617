-- force: make the owner give the lock up, step by step.
--
--   ARGV[6]  by whom, for people
--   ARGV[7]  the step:
--              ask     tell the owner that the lock is wanted from it
--              look    change nothing
--              revoke  refuse the owner's renewals from now on: its hold ends with its ttl. Sent again and again, so that a
--                      mark that is lost is made anew
--              take    take the lock away at once
--   ARGV[8]  for how many milliseconds the request stands at least
--
--   returns  {'held', owner, count, info or false, how many heard the request, ms that the hold lasts or -1,
--             ms since the owner last said that it stops its job or -1, 1 if the owner is an rlock, which heeds a
--             revocation}
--            {'broken', owner, count, info or false, 1 if the job of the owner was over}
--            {'changed', owner, count, info or false}   another owner holds it; nothing was changed
--            {'free'}
--            {'other', what the key holds}
--
-- Before `take` the lock is taken away only where --min-hold keeps it after the end of its job.
local BY, STEP, STANDS = ARGV[6], ARGV[7], tonumber(ARGV[8])

local held = (redis.call('EXISTS', LOCK) == 0 or kind_there(NAME) == NAME) and holds(OWNER)
if not held then
  return not_held()
end
local info = redis.call('HGET', HOLDER, OWNER)

-- The release that leaves the lock to --min-hold says so in the record of the owner.
local function job_is_over()
  if not info or not string.find(info, '\nover=1\n', 1, true) then
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

-- The request stays, so that a holder that wakes up later learns by whom.
local function take(over)
  forget(OWNER)  -- first: a full memory refuses some of what remove() does, but not after a write that it allows
  remove(OWNER)
  demand(BY, NOTE_MEMORY)
  parting = 'forced\0' .. string.gsub(OWNER, '%z', '?') .. '\0by\0' .. BY
  tell(OWNER, 'force')
  pass_on(0)
  return {'broken', OWNER, held, info, over}
end

-- The request is kept as well as published: a holder that does not listen yet sees it when it next renews.
local function ask()
  if redis.call('HGET', FORCE, OWNER) ~= BY then
    demand(BY, STANDS)
    tell_trouble('asked\0' .. OWNER .. '\0by\0' .. BY)
  end
  return tell(OWNER, 'force')
end

-- A hold without a ttl would never end: it gets the lease that its owner counts on.
local function revoke()
  local lease = tonumber(info and string.match(info, '\nlease=(%d+)')) or 0
  if lease > 0 and (lasts(OWNER) < 0 or next_change() < 0) then
    expire(OWNER, lease)
  end
  demand(BY, math.max(NOTE_MEMORY, lasts(OWNER) + STANDS))
  redis.call('HSET', FORCE, 'revoked:' .. OWNER, '1')
end

if STEP == 'take' or job_is_over() then
  return take(STEP == 'take' and not job_is_over() and 0 or 1)
end
local heard = 0
if STEP == 'ask' then
  heard = ask()
elseif STEP == 'revoke' then
  revoke()
end
local stops = tonumber(redis.call('HGET', FORCE, 'stops:' .. OWNER))
local silent = stops and math.max(0, math.floor(now() / 1000) - stops) or -1
local is_rlock = info or hears(OWNER) or had()
return {'held', OWNER, held, info, heard, lasts(OWNER), silent, is_rlock and 1 or 0}
