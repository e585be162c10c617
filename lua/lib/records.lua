-- records: who holds the lock, under which number, and what it tells about itself; the same for every kind. A kind
-- provides
--
--   NAME, SHARES            what it is called; whether several may hold it at once
--   holds(owner)            how often that owner holds it; nil: not at all
--   holders()               {owner, count, what it wanted, owner, …} for people; some of them when there are many
--   room(found)             how many may hold it at once, 0 where that says nothing; how many do, if holders() found these
--   disagreement(wish)      the answer to who cannot have it on its terms; nil
--   admits(wish)            whether somebody who wants that could come in now
--   no_holder()             whether it has no holder, of a lock that admits the caller
--   enter(owner, ttl, wish) the first hold
--   nest(owner)             one more that wants WISH; how many there are. `no_nesting(owner)`: why not; nil: it can
--   extend(owner, ttl)      never shortens, ttl > 0; nil, or how many ms were left. `expire(owner, ttl)` sets it
--   leave(owner)            takes one hold away; how many are left. `remove(owner)`: all of them
--   is_redissons(owner)     whether the hold of this owner is written as Redisson writes its own
--   lasts(owner)            ms until the hold of an owner ends by itself; -1: never
--   next_change()           ms until it may change with no word said; -1: never
--   say_free()              tells foreign clients; those that share look first whether there is anything to tell
--   refuses(no)             what a holder of this kind will need besides, by `no(command, key, …)`, the answer
local FENCE_MEMORY = 2592000000   -- ms without use until a fencing number is forgotten: 30 days
local NOTE_MEMORY = 600000        -- ms that an operator's wish is remembered, longer than anybody is deaf
local MANY_RECORDS = 500          -- of holders, from when those of the gone are looked for

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

-- What renewing, releasing and handing over will need is asked for before anything is written: who may take a lock
-- can let it go. Answers the first command and key or channel that the server's ACL refuses; Redis 6 cannot be asked.
--
-- Each command is asked for once: which keys this user may touch the server has seen before it ran the script, but for
-- those that are not among KEYS.
local function refused()
  local may = redis.acl_check_cmd
  if not may then
    return nil
  end
  local function no(command, key, ...)
    return not may(command, key, ...) and {'denied', command, key} or nil
  end
  return no('type', LOCK) or no('del', LOCK) or no('hget', FORCE, 'f') or no('hget', HOLDER, 'f')
      or no('hset', HOLDER, 'f', 'v') or no('hdel', HOLDER, 'f') or no('hlen', HOLDER) or no('pexpire', HOLDER, '1')
      or no('rpush', EVENTS, 'v') or no('ltrim', EVENTS, '0', '1') or no('zrange', QUEUE, '0', '0') or no('zpopmin', QUEUE)
      or no(SHARDED and 'spublish' or 'publish', EARS_OF .. OWNER, 'yours')
      or no(SHARDED and 'spublish' or 'publish', TAKEN, 'taken') or refuses(no)
      or CHANNEL ~= '' and (no('publish', CHANNEL, '0')
          or not may('pubsub', 'numsub', CHANNEL) and {'denied', 'pubsub|numsub', CHANNEL}
          or SHARDED and not may('pubsub', 'shardnumsub', CHANNEL) and {'denied', 'pubsub|shardnumsub', CHANNEL}) or nil
end

-- Those who were killed leave their records behind.
local function drop_dead_records()
  local records = redis.call('HGETALL', HOLDER)
  for i = 1, #records, 2 do
    local field = records[i]
    local what, of = string.match(field, '^(%l+):(.*)')
    local names = what == 'hold' or what == 'read' or what == 'permit'
    local counts = what == 'count' or what == 'fence' or what == 'agreed' or what == 'keep'
    local owner = names and records[i + 1] or counts and of or field
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

-- The fencing number of a holder, and 1 if it is what several servers have agreed on. If the holder's record was lost it
-- is the last number that was given out.
local function number_of(owner)
  local numbers = redis.call('HMGET', HOLDER, 'agreed:' .. owner, 'fence:' .. owner)
  return numbers[1] or numbers[2] or redis.call('GET', FENCE) or '0', numbers[1] and 1 or 0
end

-- Lets an owner in and answers its fencing number.
--
-- The order of the writes is the safety. The number comes first, because SET is what a full memory
-- refuses; then the record, instead of what an expired holder left. When the lock is written at last nothing
-- is left that could be refused between its writes, or when it is released, so that no key can ever be
-- without a ttl.
--
-- A grant that finds no holder, and is no hand-over either, tells those that take themselves for holders. Most often
-- nobody listens; that costs less (0.9 us) than to look whether the last event was a release (1.6 us).
local function grant(owner, info, ttl, wish)
  local found_free = not parting and no_holder()
  local fence = math.max((tonumber(redis.call('GET', FENCE)) or 0) + 1, now())
  fence = string.format('%.0f', fence)
  redis.call('SET', FENCE, fence, 'PX', FENCE_MEMORY)
  if SHARES then
    clear_records()
  else
    redis.call('DEL', HOLDER)
  end
  redis.call('HSET', HOLDER, owner, info, 'hold:' .. owner, owner, 'fence:' .. owner, fence)
  keep_records(ttl)
  tell_grant(owner, fence, info, wish)
  enter(owner, ttl, wish)
  if found_free then
    say_taken()
  end
  return fence
end

-- Takes back the record of an owner that holds nothing any more, and what somebody may have asked of it.
local function forget(owner)
  if SHARES then
    redis.call('HDEL', HOLDER, owner, 'hold:' .. owner, 'count:' .. owner, 'fence:' .. owner, 'agreed:' .. owner, 'keep:' .. owner)
    redis.call('HDEL', FORCE, owner, 'revoked:' .. owner, 'stops:' .. owner)
  else
    redis.call('DEL', HOLDER, FORCE)
  end
end

local function is_revoked()
  return redis.call('HGET', FORCE, 'revoked:' .. OWNER) ~= false
end

-- Notes who wants the lock from the owner, for so many ms. PEXPIRE first: a full memory refuses HSET, but not after a
-- write that it allows.
local function demand(by, ms)
  local lasts = math.max(redis.call('PTTL', FORCE), tonumber(ms))
  redis.call('PEXPIRE', FORCE, lasts)
  redis.call('HSET', FORCE, OWNER, by)
  redis.call('PEXPIRE', FORCE, lasts)
end

-- The owner stops its job for that. Told beside the answer, which must not fail for it.
local function note_stopping()
  local memory = math.max(redis.call('PTTL', FORCE), NOTE_MEMORY)
  redis.pcall('PEXPIRE', FORCE, memory)
  redis.pcall('HSET', FORCE, 'stops:' .. OWNER, string.format('%.0f', math.floor(now() / 1000)))
  redis.pcall('PEXPIRE', FORCE, memory)
end
