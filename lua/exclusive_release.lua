-- exclusive_release: let go of a lock that is still ours, and wake who waits for it.
--
--   KEYS[1]  the lock: hash {owner: hold count}
--   KEYS[2]  what holders tell about themselves
--   KEYS[3]  who asked whom to let go
--   KEYS[4]  what happened lately: stream
--   KEYS[5]  the waiters of Redisson's fair lock: list
--   ARGV[1]  owner
--   ARGV[2]  hold, as it was acquired
--   ARGV[3]  channel that hears of the release; with ":" and a name, one fair waiter's
--   ARGV[4]  for how many milliseconds the release is remembered
--
--   returns  {'released'}
--            {'still_held', count}   another hold of the same owner is left
--            {'lost', type of the key, new owner or false, its info or false, request or false}
--
-- Sent twice it answers the same: the first time takes the hold off the record and leaves a note in the
-- stream, the second finds the one gone or the other there. The first write is HDEL, which a full memory
-- allows, and after one write it allows the others too. PUBLISH is last, because nothing undoes a message.
local function was_released()
  for _, entry in ipairs(redis.call('XREVRANGE', KEYS[4], '+', '-', 'COUNT', 64)) do
    local fields = entry[2]
    if fields[1] == 'released' and fields[2] == ARGV[2] then
      return true
    end
  end
  return false
end

local kind = redis.call('TYPE', KEYS[1]).ok
local count = kind == 'hash' and redis.call('HGET', KEYS[1], ARGV[1])
if not count then
  if was_released() then
    return {'released'}
  end
  local owner = kind == 'hash' and redis.call('HGETALL', KEYS[1])[1]
  return {'lost', kind, owner, owner and redis.call('HGET', KEYS[2], owner), redis.call('GET', KEYS[3])}
end

if redis.call('HDEL', KEYS[2], 'hold:' .. ARGV[2]) == 0 and redis.call('EXISTS', KEYS[2]) == 1 then
  return {'still_held', tonumber(count)}
end
redis.call('XADD', KEYS[4], 'MAXLEN', '~', 128, '*', 'released', ARGV[2], 'owner', ARGV[1])
redis.call('PEXPIRE', KEYS[4], ARGV[4])
if tonumber(count) > 1 then
  return {'still_held', redis.call('HINCRBY', KEYS[1], ARGV[1], -1)}
end

redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('PUBLISH', ARGV[3], '0')
local fair = redis.call('LINDEX', KEYS[5], 0)
if fair then
  redis.call('PUBLISH', ARGV[3] .. ':' .. fair, '0')
end
return {'released'}
