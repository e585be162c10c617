-- line: who waits, and how the lock goes from one to the next; the same for every kind.
local CLAIM = 2000                -- ms that a new holder has to confirm
local YOUNG = 250000              -- us after arrival during which a waiter may not listen yet
local WAITING = 30000             -- ms without a look from any waiter until the queue is forgotten
local LONGEST_DEBT = 1000000      -- us for which we keep a lock from foreign clients that kept it from us
local RESERVATION = 10            -- ms that a free lock is left to foreign clients
local LEAVERS = 2000              -- bytes of owners that left the queue, which are remembered
local LOOKS = 10000               -- ms after which any waiter looks again, whatever it was told

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
    if tell(first, word) > 0 then
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
    tell(first, 'next')
  end
end

-- Whether a waiter hears what is said to it. Who has only just come may not listen yet.
local function is_there(waiter, arrival)
  return now() - tonumber(arrival) < YOUNG or hears(waiter)
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

-- Has it watched whether who was let in comes: by the first of those who stay.
local function have_claim_watched()
  local first = redis.call('ZRANGE', QUEUE, 0, 0)[1]
  if first then
    tell(first, 'claim ' .. CLAIM)
  end
end

-- Lets in the first live waiter of the line, or as many as there is room for: for a moment, until they confirm, or,
-- if one is the caller itself, for the whole of its `ttl`. Answers how many, and the caller's own number.
--
-- Nobody who is dead listens; who has only just arrived may not listen yet. At most 50 are looked at;
-- the next few are told to look then, and go on from there.
--
-- The one who gets the lock is told last: a server sends first what was said last (seen with Redis 7), and who
-- only watches should not wake up before it.
local function let_in_the_next(me, my_info, my_ttl)
  local let_in, my_fence = 0, nil
  for _ = 1, 50 do
    local waiter, arrival = next_waiter()
    if not waiter then
      return let_in, my_fence
    end
    if not SHARES and waiter ~= me then
      have_claim_watched()
    end
    local heard = waiter == me or tell(waiter, 'yours') > 0
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
    tell(waiter, 'look 0')
  end
  return let_in, my_fence
end

-- Lets in whom it can. If the caller stays it watches over their claims as well, for nobody may be alive of those
-- before it.
local function hand_over(me, my_info, my_ttl)
  local let_in, my_fence = let_in_the_next(me, my_info, my_ttl)
  if let_in > 0 and not my_fence then
    if SHARES then
      have_claim_watched()
    end
    if me then
      tell(me, 'claim ' .. CLAIM)
    end
  end
  return let_in, my_fence
end

-- Notes something that concerns all who wait.
local function note(what, text)
  redis.call('HSET', WAITERS, what, text)
  redis.call('PEXPIRE', WAITERS, WAITING)
end

local function note_moment(event)
  note(event, string.format('%.0f', now()))
end

-- When the lock was last left to foreign clients, and when a waiter had it again after that; 0: never.
local function last_spell()
  local moments = redis.call('HMGET', WAITERS, '#left', '#took')
  return tonumber(moments[1]) or 0, tonumber(moments[2]) or 0
end

-- As hand_over, of a lock that was found free: a spell of foreign clients ends with the first time. What foreign clients
-- take later, when the queue happens to be empty, is no part of the spell.
local function hand_over_found(me, my_info, my_ttl)
  local let_in, my_fence = hand_over(me, my_info, my_ttl)
  if let_in > 0 then
    local left, took = last_spell()
    if left > took then
      note_moment('#took')
    end
  end
  return let_in, my_fence
end

-- Every third hand-over leaves the lock to the foreign clients that wait for it, if there are any: a queue that is never
-- empty would starve them. But foreign clients starve the queue as well, because a client that has just unlocked may lock
-- again before any message arrives. So after such a spell the queue keeps the lock for as long as the spell took,
-- LONGEST_DEBT at most. `ears` is how many of those who listen on the lock's channel are rlock's.
local function is_foreign_turn(ears)
  if CHANNEL == '' or not more_listen(ears) or redis.call('EXISTS', QUEUE) == 0
      or SHARES and not is_open() then
    return false
  end
  local turn = redis.call('HINCRBY', WAITERS, '#turn', 1)
  redis.call('PEXPIRE', WAITERS, WAITING)
  if turn % 3 ~= 0 then
    return false
  end
  local left, took = last_spell()
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
-- last, because nothing undoes them. How many of ours came in.
local function pass_on(ears)
  if is_foreign_turn(ears) and tell_first('look ' .. RESERVATION) then
    tell_parting()
    note_moment('#left')
    redis.call('SET', RESERVED, '1', 'PX', RESERVATION)
    say_free()
    return 0
  end
  local let_in = hand_over()
  tell_parting()
  if SHARES and let_in == 0 then
    warn_first()
  end
  if SHARES or let_in == 0 then
    say_free()
  end
  return let_in
end

-- Who is first now watches for all, and listens where the holder is foreign; behind one of ours it need not ask.
local function appoint_first()
  local change = next_change()
  local may_rest = not SHARES and change > 0 and not foreign_among(holders())
  tell_first('look ' .. (may_rest and change or 0))
  announce_next()
end

-- By whoever finds that the lock may be free: how many came in.
local function advance()
  local open = redis.call('EXISTS', RESERVED) == 0 and (SHARES or admits(WISH))
  return open and hand_over_found() or 0
end

-- By who came for something else: its own lock is gone, or renewed. What keeps the next out, such as a foreign type at
-- one of our keys, is no answer to that.
local function leave_it_to_the_next()
  pcall(advance)
end

-- Leaving the queue leaves a note, so that it has the same answer when it is sent twice. The last few are remembered.
local function note_leaver()
  local gone = redis.call('HGET', WAITERS, '#gone') or '\0'
  note('#gone', string.sub(gone .. OWNER .. '\0', -LEAVERS))
end

local function has_left_the_line()
  local gone = redis.pcall('HGET', WAITERS, '#gone')
  return type(gone) == 'string' and string.find(gone, '\0' .. OWNER .. '\0', 1, true)
end

-- Takes OWNER out of the line; false when it was not in it.
local function leave_the_line()
  local place = redis.call('ZRANK', QUEUE, OWNER)
  if not place then
    return false
  end
  redis.call('ZREM', QUEUE, OWNER)
  take_out(OWNER)
  note_leaver()
  if advance() == 0 and place == 0 then
    appoint_first()
  end
  return true
end

-- {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, who wanted it from us or false}
local function lost()
  local other = holders()
  if SHARES and WISH ~= 'write' and other[3] ~= 'write' then
    other = {}  -- who is there with us has taken nothing from us
  end
  local kind = redis.call('EXISTS', LOCK) == 1 and kind_there(NAME) or NAME
  local what = kind ~= NAME and kind or other[1] and 'held' or 'none'
  local info = other[1] and redis.call('HGET', HOLDER, other[1]) or false
  local by = redis.call('HGET', FORCE, OWNER)
  if had() then
    tell_trouble('lost\0' .. OWNER .. '\0what\0' .. what .. '\0by\0' .. (by or '') .. '\0holder\0' .. (other[1] or ''))
  end
  return {'lost', what, other[1] or false, info, by}
end
