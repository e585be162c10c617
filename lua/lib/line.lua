-- line: who waits, and how the lock goes from one to the next; the same for every kind. A kind provides
--
--   NAME, SHARES            what it is called; whether several may hold it at once
--   holds(owner)            how often that owner holds it; nil: not at all
--   holders()               {owner, count, what it wanted, owner, …} for people; some of them when there are many
--   room(found)             how many may hold it at once, 0 where that says nothing; how many do, if holders() found these
--   disagreement(wish)      the answer to who cannot have it on its terms; nil
--   admits(wish)            whether somebody who wants that could come in now
--   enter(owner, ttl, wish) the first hold
--   nest(owner)             one more that wants WISH; how many there are. `no_nesting(owner)`: why not; nil: it can
--   extend(owner, ttl)      never shortens; whether it did anything. `expire(owner, ttl)` sets it
--   leave(owner)            takes one hold away; how many are left. `remove(owner)`: all of them
--   next_change()           ms until it may change with no word said; -1: never
--   say_free()              tells foreign clients; those that share look first whether there is anything to tell
--   NEEDED                  the rights that a holder will need, as acl_check_cmd takes them
local CLAIM = 2000                -- ms that a new holder has to confirm
local YOUNG = 250000              -- us after arrival during which a waiter may not listen yet
local WAITING = 30000             -- ms without a look from any waiter until the queue is forgotten
local FENCE_MEMORY = 2592000000   -- ms without use until a fencing number is forgotten: 30 days
local NOTE_MEMORY = 600000        -- ms that a release is remembered, longer than anybody repeats one
local LONGEST_DEBT = 1000000      -- us for which we keep a lock from foreign clients that kept it from us
local RESERVATION = 10            -- ms that a free lock is left to foreign clients
local MANY_RECORDS = 500          -- of holders, from when those of the gone are looked for
local LOOKS = 10000               -- ms after which any waiter looks again, whatever it was told

-- The answer when the lock cannot be had at all.
local function objection()
  if redis.call('EXISTS', LOCK) == 0 then
    return nil
  end
  local kind = kind_there(NAME)
  return kind ~= NAME and {'other', kind} or disagreement(WISH)
end

-- To an operator who means an owner that does not hold it.
local function not_held()
  local kind = redis.call('EXISTS', LOCK) == 1 and kind_there(NAME) or NAME
  if kind ~= NAME then
    return {'other', kind}
  end
  local found = holders()
  return found[1] and {'changed', found[1], found[2], redis.call('HGET', HOLDER, found[1])} or {'free'}
end

-- What renewing and releasing will need is asked for before anything is written: who may take a lock can let
-- it go. Answers the first command and key that the server's ACL refuses; Redis 6 cannot be asked.
local function refused()
  local may = redis.acl_check_cmd
  if not may then
    return nil
  end
  for _, words in ipairs(NEEDED) do
    if not may(unpack(words)) then
      return {'denied', words[1], words[2]}
    end
  end
  return not may('type', LOCK) and {'denied', 'type', LOCK}
      or not may('hget', HOLDER, 'f') and {'denied', 'hget', HOLDER}
      or not may('hset', HOLDER, 'f', 'v') and {'denied', 'hset', HOLDER}
      or not may('hdel', HOLDER, 'f') and {'denied', 'hdel', HOLDER}
      or not may('get', FORCE) and {'denied', 'get', FORCE}
      or not may('xadd', EVENTS, '*', 'f', 'v') and {'denied', 'xadd', EVENTS}
      or not may('zpopmin', QUEUE) and {'denied', 'zpopmin', QUEUE}
      or nil
end

-- Those who were killed leave their records behind.
local function drop_dead_records()
  local records = redis.call('HGETALL', HOLDER)
  for i = 1, #records, 2 do
    local field = records[i]
    local names = string.match(field, '^hold:') or string.match(field, '^permit:')
    local owner = names and records[i + 1] or string.match(field, '^count:(.*)') or field
    if not holds(owner) then
      redis.call('HDEL', HOLDER, field)
    end
  end
end

-- The record of the holders lives as long as the longest of them.
local function keep_records(ttl)
  if not SHARES or redis.call('PTTL', HOLDER) < tonumber(ttl) then
    redis.call('PEXPIRE', HOLDER, ttl)
  end
end

local function clear_records()
  local records = redis.call('HLEN', HOLDER)
  if records > MANY_RECORDS and now_and_then(records) then
    drop_dead_records()
  end
end

-- Lets an owner in and answers its fencing number.
--
-- The order of the writes is the safety. The number comes first, because SET is what a full memory
-- refuses; then the record, instead of what an expired holder left. When the lock is written at last nothing
-- is left that could be refused between its writes, or when it is released, so that no key can ever be
-- without a ttl.
local function grant(owner, info, ttl, wish)
  local fence = math.max((tonumber(redis.call('GET', FENCE)) or 0) + 1, now())
  fence = string.format('%.0f', fence)
  redis.call('SET', FENCE, fence, 'PX', FENCE_MEMORY)
  if SHARES then
    clear_records()
  else
    redis.call('DEL', HOLDER)
  end
  redis.call('HSET', HOLDER, owner, info, 'hold:' .. owner, owner)
  keep_records(ttl)
  enter(owner, ttl, wish)
  return fence
end

-- Takes back the record of an owner that holds nothing any more, and what somebody may have asked of it.
local function forget(owner)
  if SHARES then
    redis.call('HDEL', HOLDER, owner, 'hold:' .. owner, 'count:' .. owner)
    local request = redis.call('GET', FORCE)
    if request and string.sub(request, 1, #owner + 1) == owner .. '\n' then
      redis.call('DEL', FORCE)
    end
  else
    redis.call('DEL', HOLDER, FORCE)
  end
end

-- Out of the line; what it wanted is the answer, where wishes differ.
local function take_out(waiter)
  local wish = SHARES and redis.call('HGET', WAITERS, 'wish:' .. waiter)
  redis.call('HDEL', WAITERS, waiter, 'wish:' .. waiter)
  return wish or WISH
end

-- Says a word to the first in line that somebody must act upon; false when nobody is there. Who does not hear
-- it is taken out: the dead for good, and who has only just come and does not listen yet finds itself gone
-- when it does, and asks anew.
local function tell_first(word)
  for _ = 1, 50 do
    local first = redis.call('ZRANGE', QUEUE, 0, 0)[1]
    if not first then
      return false
    end
    if redis.call('PUBLISH', EARS_OF .. first, word) > 0 then
      return true
    end
    redis.call('ZREM', QUEUE, first)
    take_out(first)
  end
  return false
end

-- Tells the first in line that it is; missing that costs only the time to prepare.
local function announce_next()
  local first = redis.call('ZRANGE', QUEUE, 0, 0)[1]
  if first then
    redis.call('PUBLISH', EARS_OF .. first, 'next')
  end
end

-- Whether a waiter hears what is said to it. Who has only just come may not listen yet.
local function is_there(waiter, arrival)
  return now() - tonumber(arrival) < YOUNG or redis.call('PUBSUB', 'NUMSUB', EARS_OF .. waiter)[2] > 0
end

-- Whether the first in line could come in.
local function is_open()
  local first = redis.call('ZRANGE', QUEUE, 0, 0)[1]
  return first and admits(SHARES and redis.call('HGET', WAITERS, 'wish:' .. first) or WISH)
end

-- The first in line, taken out of it, with its arrival, if it can come in. Who cannot keeps out those behind it,
-- unless it is dead.
local function next_waiter()
  while SHARES and not is_open() do
    local first, arrival = unpack(redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES'))
    if not first or is_there(first, arrival) then
      return nil
    end
    redis.call('ZREM', QUEUE, first)
    take_out(first)
  end
  return unpack(redis.call('ZPOPMIN', QUEUE))
end

-- Lets in the first live waiter of the line, or as many as there is room for: for a moment, until they confirm, or,
-- if one is the caller itself, for the whole of its `ttl`. Answers how many, and the caller's own number.
--
-- Nobody who is dead listens; who has only just arrived may not listen yet. At most 50 are looked at;
-- the next few are told to look then, and go on from there.
local function hand_over(me, my_info, my_ttl)
  local let_in, my_fence = 0, nil
  for _ = 1, 50 do
    local waiter, arrival = next_waiter()
    if not waiter then
      return let_in, my_fence
    end
    local heard = waiter == me or redis.call('PUBLISH', EARS_OF .. waiter, 'yours') > 0
    local info = redis.call('HGET', WAITERS, waiter) or ''
    local wish = take_out(waiter)
    if waiter == me then
      my_fence = grant(me, my_info, my_ttl, wish)
      announce_next()
      let_in = let_in + 1
    elseif heard or now() - tonumber(arrival) < YOUNG then
      grant(waiter, info, CLAIM, wish)
      let_in = let_in + 1
    end
    if let_in > 0 and not SHARES then
      return let_in, my_fence
    end
  end
  for _, waiter in ipairs(redis.call('ZRANGE', QUEUE, 0, 9)) do
    redis.call('PUBLISH', EARS_OF .. waiter, 'look 0')
  end
  return let_in, my_fence
end

-- Notes a moment that concerns us all.
local function note(event)
  redis.call('HSET', WAITERS, event, string.format('%.0f', now()))
  redis.call('PEXPIRE', WAITERS, WAITING)
end

-- Every third time a lock for which we queue is left to the foreign clients that wait for it, if there are
-- any: a queue that is never empty would starve them. But they starve us as well, for who has just unlocked
-- may lock again before any message arrives; so after such a spell we keep it for as long as they had it, a
-- second at most. `ears` is how many of those who listen on the lock's channel are ours.
local function is_foreign_turn(ears)
  if CHANNEL == '' or redis.call('PUBSUB', 'NUMSUB', CHANNEL)[2] <= ears or redis.call('EXISTS', QUEUE) == 0
      or SHARES and not is_open() then
    return false
  end
  local turn = redis.call('HINCRBY', WAITERS, '#turn', 1)
  redis.call('PEXPIRE', WAITERS, WAITING)
  if turn % 3 ~= 0 then
    return false
  end
  local left = tonumber(redis.call('HGET', WAITERS, '#left')) or 0
  local took = tonumber(redis.call('HGET', WAITERS, '#took')) or 0
  return left == 0 or now() - took >= math.min(took - left, LONGEST_DEBT)
end

-- The first of the holders that tells nothing about itself: a foreign one, which when it leaves speaks to nobody in
-- person. Its place in what holders() found.
local function foreign_among(found)
  for i = 1, #found, 3 do
    if redis.call('HEXISTS', HOLDER, found[i]) == 0 then
      return i
    end
  end
end

-- Some of the holders have left, and the first in line still cannot come in. The others may go without a word to it.
local function warn_first()
  if redis.call('EXISTS', QUEUE) == 0 then
    return
  end
  local change = next_change()
  if foreign_among(holders()) then
    tell_first('look 0')
  elseif change >= 0 and change < LOOKS then
    tell_first('look ' .. change)
  end
end

-- For a lock that has just been let go: to the next of ours, or to whoever else waits for it. Messages come
-- last, because nothing undoes them.
local function pass_on(ears)
  if is_foreign_turn(ears) and tell_first('look ' .. RESERVATION) then
    note('#left')
    redis.call('SET', RESERVED, '1', 'PX', RESERVATION)
    say_free()
    return
  end
  local let_in = hand_over()
  if SHARES and let_in == 0 then
    warn_first()
  end
  if SHARES or let_in == 0 then
    say_free()
  end
end

-- Takes OWNER out of the line; false when it was not in it.
local function leave_the_line()
  if redis.call('ZREM', QUEUE, OWNER) == 0 then
    return false
  end
  take_out(OWNER)
  local open = redis.call('EXISTS', RESERVED) == 0 and (SHARES or admits(WISH))
  if not open or hand_over() == 0 then
    tell_first('look 0')  -- who is first now watches for all
  end
  return true
end

-- {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, request or false}
local function lost()
  local other = holders()
  if SHARES and WISH ~= 'write' and other[3] ~= 'write' then
    other = {}  -- who is there with us has taken nothing from us
  end
  local kind = redis.call('EXISTS', LOCK) == 1 and kind_there(NAME) or NAME
  local what = kind ~= NAME and kind or other[1] and 'held' or 'none'
  local info = other[1] and redis.call('HGET', HOLDER, other[1]) or false
  return {'lost', what, other[1] or false, info, redis.call('GET', FORCE)}
end
