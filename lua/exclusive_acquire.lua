--+ plain
-- exclusive_acquire: take a free lock, confirm one that was handed over, or get in line.
--
--   ARGV[4]  hold: the owner itself, or for a nested hold an id of its own
--   ARGV[5]  ttl in milliseconds
--   ARGV[6]  info about the owner, for people
--   ARGV[7]  'wait' to get in line when it is busy, 'try' not to
--   ARGV[8]  the ticket of an earlier answer, so that a queue that was lost is put in order again; or 0
--
--   returns  {'granted', fence, count}
--            {'busy', pttl, owner, count, info or false, place from 0, ticket}
--                                   owner '' with count 0: free, but reserved or still to be looked at
--            {'denied', command, key}        nothing was changed
--            {'other', what the key holds}   nothing was changed
--
-- Sent twice it counts once: an owner is fresh for each acquisition, so a hold that is already there is
-- the same request again.
local HOLD, TTL, INFO, MANNER, TICKET = unpack(ARGV, 4)

local function again(count)
  if HOLD ~= OWNER and redis.call('HEXISTS', HOLDER, 'hold:' .. HOLD) == 0 then
    count = redis.call('HINCRBY', LOCK, OWNER, 1)
    redis.call('HSET', HOLDER, 'hold:' .. HOLD, OWNER)
  elseif HOLD == OWNER then
    redis.call('HSET', HOLDER, OWNER, INFO)
  end
  if redis.call('PTTL', LOCK) < tonumber(TTL) then
    redis.call('PEXPIRE', HOLDER, TTL)
    redis.call('PEXPIRE', LOCK, TTL)
    announce_next()  -- only now: who prepares for its turn should not take our time
  end
  return {'granted', redis.call('GET', FENCE) or '0', count}
end

-- place, ticket
local function stand_in_line()
  local ticket = tonumber(TICKET)
  redis.call('PEXPIRE', QUEUE, WAITING)
  if ticket == 0 then
    local last = redis.call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2]
    ticket = math.max((tonumber(last) or 0) + 1, now())
  end
  ticket = string.format('%.0f', ticket)
  if redis.call('ZADD', QUEUE, 'NX', ticket, OWNER) == 1 then
    redis.call('HSET', WAITERS, OWNER, INFO)
    redis.call('PEXPIRE', QUEUE, WAITING)
  end
  redis.call('PEXPIRE', WAITERS, WAITING)
  return redis.call('ZRANK', QUEUE, OWNER), ticket
end

local function busy(pttl, owner, count)
  local place, ticket = 0, '0'
  if MANNER == 'wait' then
    place, ticket = stand_in_line()
  end
  local info = owner ~= '' and redis.call('HGET', HOLDER, owner)
  return {'busy', pttl, owner, count, info, place, ticket}
end

local held = mine()
if held then
  return again(held)
end
local state, owner, count = look()
if state == 'other' then
  return {'other', owner}
end
if state == 'held' then
  redis.call('DEL', RESERVED)
  return busy(redis.call('PTTL', LOCK), owner, count)
end

local reserved = redis.call('PTTL', RESERVED)
if reserved > 0 then
  return busy(reserved, '', 0)
end
local denied = refused()
if denied then
  return denied
end
if redis.call('EXISTS', QUEUE) == 0 then
  return {'granted', grant(OWNER, INFO, TTL), 1}
end
local waiter, fence = hand_over(OWNER, INFO, TTL)
if waiter then
  note('#took')
end
if waiter == OWNER then
  return {'granted', fence, 1}
end
if waiter then
  return busy(CLAIM, waiter, 1)
end
if redis.call('EXISTS', QUEUE) == 0 then
  return {'granted', grant(OWNER, INFO, TTL), 1}
end
return busy(0, '', 0)
