-- acquire: take a free lock, confirm one that was handed over, or get in line.
--
--   ARGV[6]  hold: the owner itself, or for a nested hold an id of its own
--   ARGV[7]  ttl in milliseconds
--   ARGV[8]  info about the owner, for people
--   ARGV[9]  'wait' to get in line when it is busy, 'try' not to; 'again' for a nested hold: only if the owner
--            holds the lock at this moment, for who lost it must not be given it back behind its back
--   ARGV[10] the ticket of an earlier answer, so that a queue that was lost is put in order again; or 0
--
--   ARGV[11] milliseconds for which somebody's success is ours as well, so that we need not have the lock; or 0
--
--   returns  {'granted', fence, count, 1 if several servers have agreed on the number}
--            {'done', milliseconds ago}      somebody has succeeded; we hold nothing and wait no longer
--            {'busy', pttl, owner, count, info or false, place from 0, ticket, milliseconds until to ask again or false}
--                                   owner '' with count 0: free, but reserved or still to be looked at;
--                                   place for 'try': how many wait
--            {'denied', command, key}        nothing was changed
--            {'other', what the key holds}   nothing was changed
--            {'differs', number of permits}  as those who hold some see it; nothing was changed
--            {'lost', 'revoked', …}          the owner may not renew any more; to 'again' alone
--            {'lost', …}                     as lost() in lib/line.lua; to 'again' alone; nothing was changed
--
-- Sent twice it counts once: an owner is fresh for each acquisition, so a hold that is already there is
-- the same request again.
local HOLD, TTL, INFO, MANNER, TICKET, SHARED_FOR = unpack(ARGV, 6)

-- A record without its count would let the outer hold go too early: what might refuse the count comes first.
local function again(held)
  if HOLD ~= OWNER and redis.call('HEXISTS', HOLDER, 'hold:' .. HOLD) == 0 then
    local reason, denied = no_nesting(OWNER), refused()
    if reason or denied then
      return denied or {'other', reason}
    end
    held = nest(OWNER)
    redis.call('HSET', HOLDER, 'hold:' .. HOLD, OWNER, unpack(WISH == 'read' and {'read:' .. HOLD, OWNER} or {}))
  elseif HOLD == OWNER and redis.call('HSET', HOLDER, OWNER, INFO) == 1 then
    redis.call('HSET', HOLDER, 'hold:' .. OWNER, OWNER)  -- the record was lost, and this request is the outer hold's
  end
  if extend(OWNER, TTL) then
    keep_records(TTL)
    announce_next()  -- only now: who prepares for its turn should not take our time
  elseif redis.call('PTTL', HOLDER) < 0 then
    keep_records(TTL)  -- the record was lost, and this request has made it anew
  end
  local fence, agreed = number_of(OWNER)
  return {'granted', fence, held, agreed}
end

-- place, ticket. The stored ticket counts: an answer that was lost told it, too.
local function stand_in_line()
  local ticket = tonumber(TICKET)
  redis.call('PEXPIRE', QUEUE, WAITING)
  if ticket == 0 then
    local last = redis.call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2]
    ticket = math.max((tonumber(last) or 0) + 1, now())
  end
  ticket = string.format('%.0f', ticket)
  if redis.call('ZADD', QUEUE, 'NX', ticket, OWNER) == 1 then
    redis.call('PEXPIRE', QUEUE, WAITING)  -- at once, for HSET may be refused
    redis.call('HSET', WAITERS, OWNER, INFO, 'wish:' .. OWNER, WISH)
  else
    ticket = string.format('%.0f', redis.call('ZSCORE', QUEUE, OWNER))
  end
  redis.call('PEXPIRE', WAITERS, WAITING)
  return redis.call('ZRANK', QUEUE, OWNER), ticket
end

local function busy(ms)
  local place, ticket = 0, '0'
  if MANNER == 'wait' then
    place, ticket = stand_in_line()
  else
    place = redis.call('ZCARD', QUEUE)
  end
  local found = holders()
  local shown = SHARES and place == 0 and foreign_among(found) or 1  -- the first in line listens for foreign ones
  local info = found[shown] and redis.call('HGET', HOLDER, found[shown]) or false
  return {'busy', ms or next_change(), found[shown] or '', found[shown + 1] or 0, info, place, ticket}
end

-- A lock that is held as another exclusive kind: the plain lock and the read-write lock under one name keep each other out.
-- Its holder speaks to the queue of its own kind, so the first in this queue looks now and then.
local EXCLUSIVE = {['lock'] = true, ['read-write lock'] = true}
local LOOKS_AT_OTHER_KIND = 1000  -- ms

local function is_other_exclusive(kind)
  return kind ~= NAME and EXCLUSIVE[NAME] and EXCLUSIVE[kind]
end

local function busy_with_other_kind()
  local answer = busy(redis.call('PTTL', LOCK))
  local fields = redis.call('HSCAN', LOCK, '0', 'COUNT', 4)[2]
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' then
      local owner = string.gsub(fields[i], ':write$', '')
      answer[3], answer[4], answer[5] = owner, tonumber(fields[i + 1]) or 1, redis.call('HGET', HOLDER, owner)
      break
    end
  end
  answer[8] = answer[6] == 0 and LOOKS_AT_OTHER_KIND or false
  return answer
end

-- For a nested hold whose owner has the lock as another kind: waiting would be for itself.
local function own_other_kind()
  local kind = redis.call('EXISTS', LOCK) == 1 and kind_there(NAME)
  local is_own = kind and is_other_exclusive(kind)
      and (redis.call('HEXISTS', LOCK, OWNER) == 1 or redis.call('HEXISTS', LOCK, OWNER .. ':write') == 1)
  return is_own and {'other', kind} or nil
end

-- Who waited while somebody else succeeded shares that, however short it is to be remembered.
local function done_by_others()
  local done = SHARED_FOR ~= '0' and tonumber(redis.call('GET', DONE))
  if not done then
    return nil
  end
  local age = now() - done
  local waited = TICKET ~= '0' and done > tonumber(TICKET)
  return (waited or age < tonumber(SHARED_FOR) * 1000) and math.max(0, math.floor(age / 1000)) or nil
end

-- A success is told while we still hold the lock: who may not do that should not run.
local function refused_success()
  local may = SHARED_FOR ~= '0' and redis.acl_check_cmd
  local publish = SHARDED and 'spublish' or 'publish'
  return may and not may(publish, DONE, 'done') and {'denied', publish, DONE} or nil
end

local held = holds(OWNER)
local done = done_by_others()
if done then
  if MANNER == 'again' then
    -- what is there is the outer hold's
  elseif held then
    remove(OWNER)
    forget(OWNER)
    parting = 'released\0' .. OWNER .. '\0owner\0' .. OWNER
    pass_on(0)
  else
    leave_the_line()
  end
  return {'done', done}
end
if held and is_revoked() then
  if MANNER == 'again' then
    return {'lost', 'revoked', false, false, redis.call('HGET', FORCE, OWNER)}
  end
  remove(OWNER)  -- no job has begun under it
  forget(OWNER)
  parting = 'released\0' .. OWNER .. '\0owner\0' .. OWNER
  pass_on(0)
  return busy()
elseif held then
  return again(held)
end
if MANNER == 'again' then
  return own_other_kind() or lost()
end
if not admits(WISH) then
  local answer = objection()
  if answer and answer[1] == 'other' and is_other_exclusive(answer[2]) then
    return busy_with_other_kind()
  elseif answer then
    return answer
  end
  redis.call('DEL', RESERVED)
  return busy()
end

local reserved = redis.call('PTTL', RESERVED)
if reserved > 0 then
  return busy(reserved)
end
local denied = refused() or refused_success()
if denied then
  return denied
end
local fence
if redis.call('EXISTS', QUEUE) == 1 then
  local let_in
  let_in, fence = hand_over_found(OWNER, INFO, TTL)
end
if not fence and redis.call('EXISTS', QUEUE) == 0 and admits(WISH) then
  fence = grant(OWNER, INFO, TTL, WISH)
end
if fence then
  return {'granted', fence, 1, 0}
end
return busy(is_open() and 0 or nil)
