-- exclusive_renew: push back the expiry of a lock that is still ours.
--
--   KEYS[1]  the lock: hash {owner: hold count}
--   KEYS[2]  what holders tell about themselves
--   KEYS[3]  who asked whom to let go: "owner\nby"
--   ARGV[1]  owner
--   ARGV[2]  ttl in milliseconds
--
--   returns  {'kept', request or false}
--            {'lost', type of the key, new owner or false, its info or false, request or false}
--            request is the whole of KEYS[3]; whether it means us is for the caller to see
--
-- Never re-creates a key that is gone: somebody may have worked under it meanwhile. Never shortens: an outer
-- hold may count on more. PEXPIRE, because it is allowed when memory is full.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'hash' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
  end
  return {'kept', redis.call('GET', KEYS[3])}
end

local owner = kind == 'hash' and redis.call('HGETALL', KEYS[1])[1]
return {'lost', kind, owner, owner and redis.call('HGET', KEYS[2], owner), redis.call('GET', KEYS[3])}
