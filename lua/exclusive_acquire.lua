-- exclusive_acquire: take a free lock, or answer who has it.
--
--   KEYS[1]  the lock: hash {owner: hold count}
--   KEYS[2]  the last fencing number given out
--   KEYS[3]  what holders tell about themselves: hash {owner: info, hold:ID: owner}
--   ARGV[1]  owner
--   ARGV[2]  hold: the owner itself, or for a nested hold an id of its own
--   ARGV[3]  ttl in milliseconds
--   ARGV[4]  info about the holder, for people
--   ARGV[5]  for how many milliseconds an unused fencing number is remembered
--
--   returns  {'granted', fence, count}
--            {'busy', pttl, owner, count, info or false}   nothing was changed
--            {'other', what the key holds}                 nothing was changed
--
-- Sent twice it counts once: an owner is fresh for each acquisition, so a hold that is already there is
-- the same request again.
--
-- The order of the writes is the safety. The number comes first, because SET is what a full memory
-- refuses; then PEXPIRE and DEL, on what is left of the last holder's record; then the new record. When the
-- lock is written at last nothing is left that could be refused between HSET and PEXPIRE, or when it is
-- released, so that no key can ever be without a ttl.
local pttl = redis.call('PTTL', KEYS[1])
if pttl == -2 then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local fence = math.max((tonumber(redis.call('GET', KEYS[2])) or 0) + 1, now)
  fence = string.format('%.0f', fence)
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[3])
  redis.call('DEL', KEYS[3])
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[4], 'hold:' .. ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[3], ARGV[3])
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return {'granted', fence, 1}
end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' then
  return {'other', kind}
end
if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  return {'other', 'read-write lock'}
end

local count = redis.call('HGET', KEYS[1], ARGV[1])
if count then
  if ARGV[2] ~= ARGV[1] and redis.call('HEXISTS', KEYS[3], 'hold:' .. ARGV[2]) == 0 then
    count = redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
    redis.call('HSET', KEYS[3], 'hold:' .. ARGV[2], ARGV[1])
  end
  if pttl < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[3], ARGV[3])
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
  return {'granted', redis.call('GET', KEYS[2]) or '0', tonumber(count)}
end

local holder = redis.call('HLEN', KEYS[1]) == 1 and redis.call('HGETALL', KEYS[1]) or {}
if not tonumber(holder[2]) then
  return {'other', 'hash that is no lock'}
end
return {'busy', pttl, holder[1], tonumber(holder[2]), redis.call('HGET', KEYS[3], holder[1])}
