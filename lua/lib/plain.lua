-- plain: what the scripts of the plain lock share. Prepended to each of them.
--
--   KEYS[1]  the lock: hash {owner: hold count}
--   KEYS[2]  the last fencing number given out: string
--   KEYS[3]  what holders tell about themselves: hash {owner: info, hold:ID: owner}
--   KEYS[4]  who asked whom to let go: string "owner\nby"
--   KEYS[5]  what happened lately: stream
--   KEYS[6]  who waits: sorted set {owner: arrival in microseconds}
--   KEYS[7]  what waiters tell about themselves: hash {owner: info}; of us all: "#turn", hand-overs so far,
--            "#left" and "#took", when we last left the lock to foreign clients and had it again
--   KEYS[8]  there while a free lock is left to foreign clients for a moment: string
--   KEYS[9]  the waiters of Redisson's fair lock: list
--   ARGV[1]  owner
--   ARGV[2]  the lock's channel, which hears "0" when the lock becomes free
--   ARGV[3]  prefix of the channels on which each owner listens: "yours", "next", "look MS", "force"
local LOCK, FENCE, HOLDER, FORCE, EVENTS, QUEUE, WAITERS, RESERVED, FAIR = unpack(KEYS)
local OWNER, CHANNEL, EARS_OF = unpack(ARGV)

local CLAIM = 2000                -- ms that a new holder has to confirm
local YOUNG = 250000              -- us after arrival during which a waiter may not listen yet
local WAITING = 30000             -- ms without a look from any waiter until the queue is forgotten
local FENCE_MEMORY = 2592000000   -- ms without use until a fencing number is forgotten: 30 days
local NOTE_MEMORY = 600000        -- ms that a release is remembered, longer than anybody repeats one
local LONGEST_DEBT = 1000000      -- us for which we keep a lock from foreign clients that kept it from us
local RESERVATION = 10            -- ms that a free lock is left to foreign clients

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- 'free'; 'held', owner, count; or 'other', what the key holds.
local function look()
  local kind = redis.call('TYPE', LOCK).ok
  if kind == 'none' then
    return 'free'
  end
  if kind ~= 'hash' then
    return 'other', kind
  end
  if redis.call('HLEN', LOCK) > 1 then
    local is_rw = redis.call('HEXISTS', LOCK, 'mode') == 1
    return 'other', is_rw and 'read-write lock' or 'hash that is no lock'
  end
  local fields = redis.call('HGETALL', LOCK)
  if not tonumber(fields[2]) then
    return 'other', 'hash that is no lock'
  end
  return 'held', fields[1], tonumber(fields[2])
end

-- How often OWNER holds the lock; nil when it does not. One call, for what happens most.
local function mine()
  return tonumber(redis.pcall('HGET', LOCK, OWNER))
end

-- What renewing and releasing will need is asked for before anything is written: who may take a lock can let
-- it go. Answers the first command and key that the server's ACL refuses; Redis 6 cannot be asked.
local function refused()
  local may = redis.acl_check_cmd
  if not may then
    return nil
  end
  return not may('hget', LOCK, 'f') and {'denied', 'hget', LOCK}
      or not may('hlen', LOCK) and {'denied', 'hlen', LOCK}
      or not may('hgetall', LOCK) and {'denied', 'hgetall', LOCK}
      or not may('hset', LOCK, 'f', 'v') and {'denied', 'hset', LOCK}
      or not may('pexpire', LOCK, '1') and {'denied', 'pexpire', LOCK}
      or not may('del', LOCK) and {'denied', 'del', LOCK}
      or not may('hget', HOLDER, 'f') and {'denied', 'hget', HOLDER}
      or not may('hset', HOLDER, 'f', 'v') and {'denied', 'hset', HOLDER}
      or not may('hdel', HOLDER, 'f') and {'denied', 'hdel', HOLDER}
      or not may('get', FORCE) and {'denied', 'get', FORCE}
      or not may('xadd', EVENTS, '*', 'f', 'v') and {'denied', 'xadd', EVENTS}
      or not may('publish', CHANNEL, '0') and {'denied', 'publish', CHANNEL}
      or not may('lindex', FAIR, '0') and {'denied', 'lindex', FAIR}
      or nil
end

-- Writes a free lock to an owner and answers its fencing number.
--
-- The order of the writes is the safety. The number comes first, because SET is what a full memory
-- refuses; then the record, instead of what an expired holder left. When the lock is written at last nothing
-- is left that could be refused between HSET and PEXPIRE, or when it is released, so that no key can ever be
-- without a ttl.
local function grant(owner, info, ttl)
  local fence = math.max((tonumber(redis.call('GET', FENCE)) or 0) + 1, now())
  fence = string.format('%.0f', fence)
  redis.call('SET', FENCE, fence, 'PX', FENCE_MEMORY)
  redis.call('DEL', HOLDER)
  redis.call('HSET', HOLDER, owner, info, 'hold:' .. owner, owner)
  redis.call('PEXPIRE', HOLDER, ttl)
  redis.call('HSET', LOCK, owner, 1)
  redis.call('PEXPIRE', LOCK, ttl)
  return fence
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
    redis.call('HDEL', WAITERS, first)
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

-- Takes the first live waiter out of the queue and writes the free lock to it: for a moment, until it
-- confirms, or, if it is the caller itself, for the whole of its `ttl`. Answers the waiter and its number, or
-- nil.
--
-- Nobody who is dead listens; who has only just arrived may not listen yet. At most 50 dead are skipped;
-- the next few are told to look then, and go on from there.
local function hand_over(me, my_info, my_ttl)
  for _ = 1, 50 do
    local waiter, arrival = unpack(redis.call('ZPOPMIN', QUEUE))
    if not waiter then
      return nil
    end
    local heard = waiter == me or redis.call('PUBLISH', EARS_OF .. waiter, 'yours') > 0
    local info = redis.call('HGET', WAITERS, waiter) or ''
    redis.call('HDEL', WAITERS, waiter)
    if waiter == me then
      local fence = grant(me, my_info, my_ttl)
      announce_next()
      return waiter, fence
    end
    if heard or now() - tonumber(arrival) < YOUNG then
      return waiter, grant(waiter, info, CLAIM)
    end
  end
  for _, waiter in ipairs(redis.call('ZRANGE', QUEUE, 0, 9)) do
    redis.call('PUBLISH', EARS_OF .. waiter, 'look 0')
  end
  return nil
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
  if redis.call('PUBSUB', 'NUMSUB', CHANNEL)[2] <= ears or redis.call('EXISTS', QUEUE) == 0 then
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

-- For a lock that has just been deleted: to the next of ours, or to whoever else waits for it. Messages come
-- last, because nothing undoes them.
local function pass_on(ears)
  if is_foreign_turn(ears) and tell_first('look ' .. RESERVATION) then
    note('#left')
    redis.call('SET', RESERVED, '1', 'PX', RESERVATION)
  elseif hand_over() then
    return
  end
  redis.call('PUBLISH', CHANNEL, '0')
  local fair = redis.call('LINDEX', FAIR, 0)
  if fair then
    redis.call('PUBLISH', CHANNEL .. ':' .. fair, '0')
  end
end

-- {'lost', type of the key, new owner or false, its info or false, request or false}
local function lost()
  local state, owner = look()
  local kind = state == 'free' and 'none' or state == 'held' and 'hash' or owner
  local holder = state == 'held' and owner
  return {'lost', kind, holder, holder and redis.call('HGET', HOLDER, holder), redis.call('GET', FORCE)}
end

