-- names: what every script is given. The first part of each of them; then come the kind, lib/trail.lua, lib/records.lua,
-- lib/line.lua and the verb.
--
--   KEYS[1]  the lock itself, in the layout of its kind
--   KEYS[2]  the last fencing number given out: string
--   KEYS[3]  what holders tell about themselves: hash {owner: info, hold:ID: owner; of a nested read,
--            whatever its owner has besides, read:ID: owner; where the kind has no place for them, count:OWNER: holds,
--            permit:HEX: owner; fence:OWNER: its number; agreed:OWNER: the number that several
--            servers have agreed on; keep:OWNER: until when, in ms, a hold that is gone wanted the lock to stay taken}
--   KEYS[4]  who asked whom to let go: hash {owner: by, revoked:OWNER: 1 where the renewals of that owner are refused,
--            stops:OWNER: when, in ms, that owner last said that it stops its job}
--   KEYS[5]  what happened lately: list of texts whose words a NUL parts: when (the fencing number, or SECONDS.MICROSECONDS),
--            one of acquired OWNER, released HOLD, forced OWNER, lost OWNER, renewed_late OWNER, asked OWNER, then pairs
--   KEYS[6]  who waits: sorted set {owner: arrival in microseconds}
--   KEYS[7]  what waiters tell about themselves: hash {owner: info, wish:OWNER: its WISH}; of us all: "#turn",
--            hand-overs so far; "#left" and "#took", when the lock was last left to foreign clients and when a waiter
--            first had it again; "#gone", the owners that left the queue lately, each between two NULs
--   KEYS[8]  there while a free lock is left to foreign clients for a moment: string
--   KEYS[9]  the waiters of Redisson's fair lock: list
--   KEYS[10] a second key of some kinds
--   KEYS[11] when a job last succeeded under this lock, in microseconds, if it was to be remembered: string
--   ARGV[1]  owner
--   ARGV[2]  the lock's channel, on which foreign clients hear that it became free; '' when the kind has none
--   ARGV[3]  prefix of the channels on which each owner listens: "yours", "next", "look MS", "force"
--   ARGV[4]  what the owner wants of this kind: '', 'read', 'write', or the number of permits
--   ARGV[5]  'cluster' where the keys are shared among several servers, by slots; else ''
local LOCK, FENCE, HOLDER, FORCE, EVENTS, QUEUE, WAITERS, RESERVED, FAIR, SECOND, DONE = unpack(KEYS)
local OWNER, CHANNEL, EARS_OF, WISH, AMONG = unpack(ARGV)

-- In a cluster PUBLISH goes to every server and counts who listens at this one, whoever that may be. Since Redis 7 a
-- channel may belong to a slot as keys do: who listens there is counted here, all of them, and is told when it moves.
local SHARDED = AMONG == 'cluster' and redis.acl_check_cmd ~= nil

-- Every holder listens here for a grant that found no holder: its own lock is lost then. "rlock:owner:X:" makes "rlock:taken:X".
local TAKEN = 'rlock:taken:' .. string.sub(EARS_OF, #'rlock:owner:' + 1, -2)

-- Says a word to one owner; how many have heard it.
local function tell(owner, word)
  if SHARDED then
    return redis.call('SPUBLISH', EARS_OF .. owner, word)
  end
  return redis.call('PUBLISH', EARS_OF .. owner, word)
end

local function hears(owner)
  if SHARDED then
    return redis.call('PUBSUB', 'SHARDNUMSUB', EARS_OF .. owner)[2] > 0
  end
  return redis.call('PUBSUB', 'NUMSUB', EARS_OF .. owner)[2] > 0
end

-- A hint, which must not fail the grant: on Redis 6 a right that is missing shows only now.
local function say_taken()
  if SHARDED then
    redis.pcall('SPUBLISH', TAKEN, 'taken')
  else
    redis.pcall('PUBLISH', TAKEN, 'taken')
  end
end

-- To foreign clients, which listen in the one way or the other.
local function announce(word)
  redis.call('PUBLISH', CHANNEL, word)
  if SHARDED then
    redis.call('SPUBLISH', CHANNEL, word)
  end
end

-- Whether more than so many listen to what is announced. In a cluster: at this server, where most clients do.
local function more_listen(number)
  if SHARDED and redis.call('PUBSUB', 'SHARDNUMSUB', CHANNEL)[2] > number then
    return true
  end
  return redis.call('PUBSUB', 'NUMSUB', CHANNEL)[2] > number
end

-- Makes a key last `ttl` ms from now, which is more than 0; never shortens. nil when the key lasts as long anyway, else
-- how many ms it had left. A key that has lost its ttl (PERSIST) gets one, and was not short of time.
local function at_least(key, ttl)
  local left = redis.call('PTTL', key)
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', key, ttl)
    return left < 0 and tonumber(ttl) or left
  end
end

-- microseconds
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Of a string. A bare number without a ttl may be permits of which none is held, a lock taken by SETNX, or anything: it
-- is permits for who asks for those, and for others only if we know it.
local function kind_of_string(asked)
  if not string.find(redis.call('GET', LOCK), '^%-?%d+$') then
    return 'string'
  elseif redis.call('EXISTS', SECOND) == 1 then
    return 'permits'
  elseif redis.call('PTTL', LOCK) >= 0 then
    return 'string'
  elseif asked == 'permits' then
    return asked
  end
  return redis.call('EXISTS', FENCE) == 1 and 'permits' or 'string'
end

-- What is at the key: the NAME of one of our kinds, or a word for people.
local function kind_there(asked)
  local kind = redis.call('TYPE', LOCK).ok
  if kind == 'string' then
    return kind_of_string(asked)
  end
  if kind ~= 'hash' then
    return kind
  end
  local mode = redis.call('HGET', LOCK, 'mode')
  if mode == 'read' or mode == 'write' then
    return 'read-write lock'
  end
  return redis.call('HLEN', LOCK) == 1 and tonumber(redis.call('HVALS', LOCK)[1]) and 'lock' or 'hash that is no lock'
end

-- Whether it is time to look through so many things for what is dead: the more there are the more seldom, so that it
-- costs each call the same.
local function now_and_then(things)
  return now() % things < 8
end

-- How often a kind whose layout counts no holds is held by an owner of which it is known that it holds.
local function counted(owner)
  return tonumber(redis.call('HGET', HOLDER, 'count:' .. owner)) or 1
end

local function count(owner, change)
  local holds = counted(owner) + change
  redis.call('HSET', HOLDER, 'count:' .. owner, holds)
  return holds
end
