-- exclusive_inspect: what is known about a lock. Changes nothing.
--
--   KEYS[1]  the lock: hash {owner: hold count}
--   KEYS[2]  the last fencing number given out
--   KEYS[3]  what holders tell about themselves
--
--   returns  {'free', fence}
--            {'held', fence, pttl, owner, count, info or false}
--            {'other', what the key holds}
local pttl = redis.call('PTTL', KEYS[1])
if pttl == -2 then
  return {'free', redis.call('GET', KEYS[2]) or '0'}
end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' then
  return {'other', kind}
end
if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  return {'other', 'read-write lock'}
end
local holder = redis.call('HLEN', KEYS[1]) == 1 and redis.call('HGETALL', KEYS[1]) or {}
if not tonumber(holder[2]) then
  return {'other', 'hash that is no lock'}
end
local fence = redis.call('GET', KEYS[2]) or '0'
return {'held', fence, pttl, holder[1], tonumber(holder[2]), redis.call('HGET', KEYS[3], holder[1])}
