-- names: the keys, the arguments and the functions that every script may use. A verb calls these functions, and those of its
-- kind and of lib. The build leaves out of each script the functions that the script does not call. A function that only the
-- part of a verb after a line "-- Otherwise." calls stands behind the part before that line (build.lua). A server creates all
-- functions of a script in each call and takes long to make a text of a number. So in a frequent case a call ends in "-- inline",
-- which puts the body of the function in its place, and redis.call gets texts.
--
-- The keys and the arguments of every verb, in the order of core/lock/calls.h (Keys, Every):
--
--   LOCK            the lock itself, in the layout of its kind
--   FENCE           the last fencing number that the server gave out: string
--   HOLDER          the records of holders: hash {owner: info, hold:ID: owner; read:ID: owner, for a nested read whose owner also
--                   has other holds; count:OWNER: holds, and permit:HEX: owner, for a kind whose layout has no place for them;
--                   fence:OWNER: its number; agreed:OWNER: the number on which several servers have agreed;
--                   keep:OWNER: until when, in ms, a released hold must keep the lock taken (--min-hold)}
--   FORCE           requests for release: hash {owner: requester, revoked:OWNER: 1 if the script refuses the renewals of that owner,
--                   stops:OWNER: when, in ms, that owner last said that it stops its job}
--   EVENTS          recent events: list of texts, see core/lock/schema.h
--   QUEUE           the queue: sorted set {waiter: arrival in microseconds; of a freeze, less FREEZES_FIRST; less its priority times
--                   PRIORITY_BAND; with MISSED, if a message came before the waiter listened}
--   WAITERS         the records of waiters: hash {owner: info, wish:OWNER: its REQUESTED_MODE, passed:OWNER: how many later callers have
--                   joined in front of it by their priority}, and of all waiters together:
--                   #turn     the number of hand-overs so far
--                   #left     when this queue last left the lock to others
--                   #took     when a waiter of this queue first had the lock again
--                   #offered  the waiter of the other exclusive kind that got that turn
--                   #gone     the owners that left the queue lately, each between two NULs
--                   #latest   "TICKET\0OWNER\0INFO" of the newest waiter with --latest
--                   #watch    when the script last told waiters to watch hand-overs
--   RESERVED        exists while a free lock is reserved for foreign clients, or for a waiter of another kind: string '1', or the waiter
--   FAIR            the waiters of Redisson's fair lock: list
--   SECOND          a second key of some kinds
--   DONE            when a job last succeeded under this lock, in microseconds, if the server remembers the success: string
--   OWNER           owner
--   CHANNEL         the lock's channel, on which foreign clients are told that the lock became free; '' if the kind has none
--   OWNER_CHANNEL   the prefix of the channel of each owner. Its messages:
--                     yours FENCE TIME MS  the lock was handed over to the owner at TIME, in microseconds, for MS
--                     next MS              the owner is the first waiter; the lock ends in MS unless it is renewed
--                     look MS              ask again in MS
--                     claim MS             to the next waiter, not to the new holder: it is the first in line, and asks again in MS,
--                                          because the hand-over may not be confirmed by then
--                     claim MS quick       the same; holds of this lock are short at the moment
--                     watch MS             another waiter; the same
--                     force                a client requests the release
--   REQUESTED_MODE  the requested mode: '', 'read', 'write', or the number of permits
--   TOPOLOGY        'cluster' if several servers share the keys, by slots; else ''
local @unpack.keys@
local @unpack.every@

-- In a cluster PUBLISH goes to every server and counts only the subscribers of this server. Since Redis 7 a channel may belong
-- to a slot, as keys do: this server counts all its subscribers, and tells them when the slot moves.
local SHARDED = TOPOLOGY == 'cluster' and redis.acl_check_cmd ~= nil

-- The channel of grants that found no holder. Every holder listens, because such a grant means that its lock is lost.
-- "rlock:owner:X:" makes "rlock:taken:X".
local TAKEN = 'rlock:taken:' .. string.sub(OWNER_CHANNEL, #'rlock:owner:' + 1, -2)

-- Sends a message to one owner and returns the number of its subscribers.
local function notify(owner, message)
  if SHARDED then
    return redis.call('SPUBLISH', OWNER_CHANNEL .. owner, message)
  end
  return redis.call('PUBLISH', OWNER_CHANNEL .. owner, message)
end

local function is_subscribed(owner)
  if SHARDED then
    return redis.call('PUBSUB', 'SHARDNUMSUB', OWNER_CHANNEL .. owner)[2] > 0
  end
  return redis.call('PUBSUB', 'NUMSUB', OWNER_CHANNEL .. owner)[2] > 0
end

-- Publishes a hint. An error must not fail the grant: Redis 6 reports a missing right only here. But a server without the command
-- fails it, because no lock could be released or handed over there; the client takes the grant back.
local function publish_taken()
  local told = SHARDED and redis.pcall('SPUBLISH', TAKEN, 'taken') or redis.pcall('PUBLISH', TAKEN, 'taken')
  if type(told) == 'table' and string.find(told.err or '', 'Unknown Redis command', 1, true) then
    if SHARDED then
      redis.call('SPUBLISH', TAKEN, 'taken')
    end
    redis.call('PUBLISH', TAKEN, 'taken')
  end
end

-- Foreign clients listen on one of the two channels.
local function publish_to_foreign(message)
  redis.call('PUBLISH', CHANNEL, message)
  if SHARDED then
    redis.call('SPUBLISH', CHANNEL, message)
  end
end

-- Whether a channel of foreign clients has more than `number` subscribers. In a cluster, counts those on this server, where
-- most clients subscribe.
local function has_more_subscribers(channel, number)
  if SHARDED and redis.call('PUBSUB', 'SHARDNUMSUB', channel)[2] > number then
    return true
  end
  return redis.call('PUBSUB', 'NUMSUB', channel)[2] > number
end

-- Makes a key last `ttl` ms from now, ttl > 0; never shortens its ttl. Returns nil if the key lasts as long anyway, else the
-- ms that the key had left. A key that has lost its ttl (PERSIST) gets a ttl, and `ttl` is returned.
local function extend_key(key, ttl)
  local left = redis.call('PTTL', key)
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', key, ttl)
    return left < 0 and tonumber(ttl) or left
  end
end

local server_time  -- the reply of TIME: seconds and microseconds

-- The server's time in microseconds. A script asks once, because it is short.
local function now_us()
  server_time = server_time or redis.call('TIME')
  return server_time[1] * 1000000 + server_time[2]
end

-- A freeze stands before all other waiters: its score in the queue is its arrival less this number, and so below 0. (2^52 is a time
-- of the year 2112.)
local FREEZES_FIRST = 4503599627370496

-- A waiter with --priority N has its arrival less N times this number as its score: 2^43 us, 101 days. All scores stay above 0, and below
-- 2^52, where a double also has the half of MISSED, until the year 2084.
-- A client that does not know this hands over in the same order. It takes a wrong time for the arrival, and joins behind waiters whose
-- N is below 0.
local PRIORITY_BAND = 8796093022208
local MOST_PRIORITY = 100

-- The arrival of a waiter in microseconds. Of the arrivals that its score may stand for, it is the one that is within half a band of now.
-- A score that is in no band is an arrival.
local function arrival_of(score)
  score = tonumber(score)
  local bands = math.floor((now_us() - score) / PRIORITY_BAND + 0.5)
  local shift = math.abs(bands) <= MOST_PRIORITY and bands * PRIORITY_BAND or 0
  return score + (score < 0 and FREEZES_FIRST or shift)
end

-- Whether an entry of the event log has this pair, such as the kind `acquired` and its owner.
local function entry_has(entry, message, value)
  return string.find(entry .. '\0', '\0' .. message .. '\0' .. value .. '\0', 1, true)
end

local lost_content  -- what a kind has found at the key in place of its lock, for people; nil: its name tells it

-- The number of free permits that rlock last wrote: string. The key is not in KEYS, because only one kind writes it.
local OWN_NUMBER = 'rlock:permits:' .. string.sub(HOLDER, #'rlock:holder:' + 1)

-- The kind of lock in a string. A bare number without a ttl may be permits of which none is held, a lock taken by
-- SETNX, or any other data. For a request for permits the number counts as permits; for other requests it does so only if
-- rlock has written such a number.
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
  return redis.pcall('EXISTS', OWN_NUMBER) == 1 and 'permits' or 'string'
end

local TIMEOUTS = string.sub(SECOND, 1, -#'timeout' - 1)

-- The key that ends when this hold of a reader does.
local function timeout_of(reader, hold)
  return TIMEOUTS .. reader .. ':rwlock_timeout:' .. hold
end

-- Whether Redisson or rlock names an owner so: UUID:THREAD, UUID:PID.
local function is_usual_owner(name)
  return string.find(name, ':%-?%d') == 37 and string.find(name, '^[%x-]+:')
end

-- Whether a hold of a read-write lock in that mode is among these fields. A living reader has a timeout. A dead reader is known
-- by its name, if the hash has a ttl.
local function has_hold(fields, mode)
  local has_dead_reader
  for i = 1, #fields, 2 do
    local name, held = fields[i], string.find(fields[i + 1], '^[1-9]%d*$') and fields[i + 1]
    if not held then
      -- no hold
    elseif mode == 'write' and string.find(name, ':write$')
        or mode == 'read' and redis.pcall('EXISTS', timeout_of(name, held)) == 1 then
      return true
    else
      has_dead_reader = has_dead_reader or mode == 'read' and is_usual_owner(name)
    end
  end
  return has_dead_reader and redis.call('PTTL', LOCK) >= 0
end

-- Whether the hash is a read-write lock in that mode. A field `mode` is no proof, because another program may have one. Looks at
-- a part of a large hash, and at a larger part if that proves nothing.
local function is_read_write_lock(mode)
  for _, count in ipairs({16, 1000}) do
    if has_hold(redis.call('HSCAN', LOCK, '0', 'COUNT', count)[2], mode) then
      return true
    end
  end
  return false
end

-- What the key holds: the NAME of a kind, or a word for people.
local function kind_at_key(asked)
  local kind = redis.call('TYPE', LOCK).ok
  if kind == 'string' then
    return kind_of_string(asked)
  end
  if kind ~= 'hash' then
    return kind
  end
  local mode = redis.call('HGET', LOCK, 'mode')
  if (mode == 'read' or mode == 'write') and is_read_write_lock(mode) then
    return 'read-write lock'
  end
  return redis.call('HLEN', LOCK) == 1 and tonumber(redis.call('HVALS', LOCK)[1]) and 'lock' or 'hash that is no lock'
end

-- Whether to look through so many things for dead ones. The chance is inverse to their number, so that the average cost is
-- constant.
local function is_cleanup_due(things)
  local now = now_us()  -- inline
  return now % things < 8
end

-- The holds of a holder, for a kind whose layout has no count.
local function hold_count(owner)
  return tonumber(redis.call('HGET', HOLDER, 'count:' .. owner)) or 1
end

local function change_hold_count(owner, change)
  local count = hold_count(owner)  -- inline
  local changed = count + change
  redis.call('HSET', HOLDER, 'count:' .. owner, changed)
  return changed
end
