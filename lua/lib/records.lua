-- records: the holders, their fencing numbers, and their records. The same for every kind. A kind provides
--
--   NAME, MULTI_HOLDER           its name; whether several owners may hold the lock at once
--   NEEDS_NO_KEY                 whether every request can be granted if the key of the lock does not exist
--   OTHER_QUEUE                  the queue of the other exclusive kind under this name; QUEUE: there is no such kind
--   holds(owner)                 how many holds that owner has; nil: none
--   holders()                    {owner, count, mode, owner, …} for display; only some of them if there are many
--   capacity(found)              how many owners may hold the lock at once (0: without meaning), and how many do; `found`: holders()
--   mismatch(requested)          the reply to a request whose terms differ from the lock's; nil
--   admits(requested)            whether a request of that mode could be granted now
--   has_no_holder()              whether a lock that admits the caller has no holder
--   add_holder(owner, ttl, requested)  the first hold of an owner
--   add_hold(owner)              one more hold in REQUESTED_MODE; returns their number
--   reentry_obstacle(owner)      why the owner cannot have one more hold; nil: it can
--   extend(owner, ttl)           extends the owner's holds, never shortens, ttl > 0; returns nil, or how many ms were left
--   set_ttl(owner, ttl)          sets the ttl of the owner's holds
--   remove_hold(owner)           removes one hold; returns how many are left
--   remove_holder(owner)         removes all holds of the owner
--   is_redisson_hold(owner)      whether the hold of this owner is written as Redisson writes its own
--   remaining_ms(owner)          ms until the holds of an owner expire; -1: never
--   next_expiry_ms()             ms until the lock may change without a message; -1: never
--   announce_free()              tells foreign clients; a kind with several holders first checks whether there is news
--   missing_kind_right(no)       checks the further rights of a holder by `no(command, key, …)`, which returns the reply or nil
local REQUEST_MEMORY = 600000  -- ms that the server keeps a request for release; a living holder asks sooner
local CLEANUP_THRESHOLD = 500  -- number of records above which the script removes those of dead owners

-- The reply if the content of the key makes the request impossible; else nil.
local function obstacle_reply()
  if redis.call('EXISTS', LOCK) == 0 then
    return nil
  end
  local kind = kind_at_key(NAME)
  return kind ~= NAME and {'other', kind} or mismatch(REQUESTED_MODE)
end

-- Whether a lock that is held as that kind excludes this kind, so that a client waits for it: the plain lock and the read-write
-- lock under one name exclude each other.
local EXCLUSIVE = {['lock'] = true, ['read-write lock'] = true}

local function is_other_exclusive(kind)
  return kind ~= NAME and EXCLUSIVE[NAME] and EXCLUSIVE[kind]
end

-- A holder of a lock that is held as another exclusive kind, and its holds; nil: there is none.
local function holder_of_other_kind()
  local fields = redis.call('HSCAN', LOCK, '0', 'COUNT', 4)[2]
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' then
      return (string.gsub(fields[i], ':write$', '')), tonumber(fields[i + 1]) or 1
    end
  end
end

-- The reply to an operator if the named owner does not hold the lock.
local function not_held_reply()
  local kind = redis.call('EXISTS', LOCK) == 1 and kind_at_key(NAME) or NAME
  local owner, count
  if kind ~= NAME and is_other_exclusive(kind) then
    owner, count = holder_of_other_kind()
  elseif kind == NAME then
    owner, count = unpack(holders(), 1, 2)
  end
  if lost_content or kind ~= NAME and (not owner or owner == OWNER) then
    return {'other', lost_content or kind}
  end
  return owner and {'changed', owner, count, redis.call('HGET', HOLDER, owner)} or {'free'}
end

-- Checks, before the first write, the rights that renewing, releasing and handing over will need: a client that may acquire a
-- lock must be able to release it. Returns the reply with the first command and key or channel that the server's ACL refuses;
-- nil: none. Redis 6 cannot check.
--
-- Checks each command once, because the server has checked the rights to all KEYS before it ran the script. Checks channels and
-- derived keys one by one.
local function denied_reply()
  local may = redis.acl_check_cmd
  if not may then
    return nil
  end
  local count = SHARDED and 'shardnumsub' or 'numsub'
  local function no(command, key, ...)
    return not may(command, key, ...) and {'denied', command, key} or nil
  end
  return no('type', LOCK) or no('del', LOCK) or no('pttl', LOCK) or no('get', FENCE) or no('hget', FORCE, 'f')
      or no('hget', HOLDER, 'f') or no('hmget', HOLDER, 'f') or no('hset', HOLDER, 'f', 'v')
      or no('hdel', HOLDER, 'f') or no('hlen', HOLDER) or no('pexpire', HOLDER, '1') or no('rpush', EVENTS, 'v')
      or no('ltrim', EVENTS, '0', '1') or no('zrange', QUEUE, '0', '0') or no('zpopmin', QUEUE) or no('exists', OTHER_QUEUE)
      or no(SHARDED and 'spublish' or 'publish', OWNER_CHANNEL .. OWNER, 'yours')
      or not may('pubsub', count, OWNER_CHANNEL .. OWNER) and {'denied', 'pubsub|' .. count, OWNER_CHANNEL .. OWNER}
      or no(SHARDED and 'spublish' or 'publish', TAKEN, 'taken') or missing_kind_right(no)
      or CHANNEL ~= '' and (no('publish', CHANNEL, '0')
          or not may('pubsub', 'numsub', CHANNEL) and {'denied', 'pubsub|numsub', CHANNEL}
          or SHARDED and not may('pubsub', 'shardnumsub', CHANNEL) and {'denied', 'pubsub|shardnumsub', CHANNEL}) or nil
end

-- Removes the records of owners that were killed.
local function drop_dead_records()
  local records = redis.call('HGETALL', HOLDER)
  for i = 1, #records, 2 do
    local field = records[i]
    local what, of = string.match(field, '^(%l+):(.*)')
    local names = what == 'hold' or what == 'read' or what == 'permit'
    local counts = what == 'count' or what == 'fence' or what == 'agreed' or what == 'keep'
    local owner = names and records[i + 1] or counts and of or field
    local held = holds(owner)  -- inline
    if not held then
      redis.call('HDEL', HOLDER, field)
    end
  end
end

-- Extends the ttl of the records to that of the longest hold.
local function extend_records(ttl)
  local left = -1
  if MULTI_HOLDER then
    left = redis.call('PTTL', HOLDER)
  end
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', HOLDER, ttl)
  end
end

local function clean_records()
  local records = redis.call('HLEN', HOLDER)
  if records > CLEANUP_THRESHOLD then
    local due = is_cleanup_due(records)  -- inline
    if due then
      drop_dead_records()  -- inline
    end
  end
end

-- The fencing number of a holder, and 1 if several servers have agreed on the number. `agreed`, `granted`: fields of its record; if
-- the record was lost: the last number that the server gave out.
local function fence_in(agreed, granted)
  return agreed or granted or redis.call('GET', FENCE) or '0', agreed and 1 or 0
end

local function fence_of(owner)
  return fence_in(unpack(redis.call('HMGET', HOLDER, 'agreed:' .. owner, 'fence:' .. owner)))
end

-- ms since the grant, by the fencing number, which is the time of the grant, or later if the server's clock was set back; -1:
-- unknown.
local function age_of(fence)
  local granted = tonumber(fence)
  return granted and math.max(0, math.floor((now_us() - granted) / 1000)) or -1
end

-- 1 if the server refuses the renewals of that owner, else 0. A user that may only look at the lock may have no right to this key.
local function revoked_flag(owner)
  return redis.pcall('HGET', FORCE, 'revoked:' .. owner) == '1' and 1 or 0
end

-- Makes `owner` a holder and returns its fencing number. `arrival`, `is_claim`: see log_grant().
--
-- The order of the writes makes this safe. The number comes first, because a full memory refuses SET. The record comes next and
-- replaces the record of an expired holder. The lock comes last: then no write is left that the server could refuse, now or at
-- the release, so that no key is ever without a ttl.
--
-- The script publishes a grant that found no holder and is no hand-over, because an earlier owner may still believe that it holds
-- the lock. Mostly the channel has no subscriber; publishing (0.9 us) is cheaper than reading whether the last event was a
-- release (1.6 us).
local function grant(owner, info, ttl, requested, arrival, is_claim)
  local found_free = false
  if not pending_release then
    found_free = has_no_holder()  -- inline
  end
  local now = now_us()  -- inline
  local fence = string.format('%.0f', now)
  local last = tonumber(redis.call('SET', FENCE, fence, 'PX', '@default.fence_memory@', 'GET'))
  if last and last >= now then
    fence = string.format('%.0f', last + 1)
    redis.call('SET', FENCE, fence, 'PX', '@default.fence_memory@')
  end
  if MULTI_HOLDER then
    clean_records()  -- inline
  else
    redis.call('DEL', HOLDER)
  end
  redis.call('HSET', HOLDER, owner, info, 'hold:' .. owner, owner, 'fence:' .. owner, fence)
  extend_records(ttl)  -- inline
  log_grant(owner, fence, info, requested, arrival, is_claim)  -- inline
  add_holder(owner, ttl, requested)  -- inline
  if found_free then
    publish_taken()  -- inline
  end
  return fence
end

-- Fails if grant() would fail because of the type of a key. A request that first takes something from another client calls this.
local function check_keys_of_grant()
  redis.call('GET', FENCE)
  redis.call('HGET', HOLDER, OWNER)
  redis.call('LRANGE', EVENTS, 0, 0)
end

-- Deletes the record of an owner that no longer has a hold, and the requests to that owner.
local function forget_owner(owner)
  if MULTI_HOLDER then
    redis.call('HDEL', HOLDER, owner, 'hold:' .. owner, 'count:' .. owner, 'fence:' .. owner, 'agreed:' .. owner,
        'keep:' .. owner)
    redis.pcall('HDEL', FORCE, owner, 'revoked:' .. owner, 'stops:' .. owner)  -- a foreign type there must not fail a release
  else
    redis.call('DEL', HOLDER, FORCE)
  end
end

local function is_revoked()
  return redis.call('HGET', FORCE, 'revoked:' .. OWNER) ~= false
end

-- Stores the requester of the release for `ms`. PEXPIRE comes first: a full memory refuses HSET, but not after a write that it
-- allows.
local function store_request(requester, ms)
  local remaining_ms = math.max(redis.call('PTTL', FORCE), tonumber(ms))
  redis.call('PEXPIRE', FORCE, remaining_ms)
  redis.call('HSET', FORCE, OWNER, requester)
  redis.call('PEXPIRE', FORCE, remaining_ms)
end

-- Stores that OWNER stops its job because of a request. An error here must not become the reply of the script.
local function note_stopping()
  local memory = math.max(redis.call('PTTL', FORCE), REQUEST_MEMORY)
  redis.pcall('PEXPIRE', FORCE, memory)
  local now = now_us()  -- inline
  redis.pcall('HSET', FORCE, 'stops:' .. OWNER, string.format('%.0f', math.floor(now / 1000)))
  redis.pcall('PEXPIRE', FORCE, memory)
end
