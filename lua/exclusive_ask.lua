-- exclusive_ask: tell the holder that somebody wants its lock. The first step of force-unlock.
--
--   KEYS[1]  the lock: hash {owner: hold count}
--   KEYS[2]  what holders tell about themselves
--   KEYS[3]  who asked whom to let go: "owner\nby"
--   ARGV[1]  owner who is meant
--   ARGV[2]  by whom, for people
--   ARGV[3]  for how many milliseconds the request stands
--   ARGV[4]  the owner's channel
--
--   returns  {'asked', owner, count, info or false, how many heard it}
--            {'changed', owner, count, info or false}   somebody else holds it by now
--            {'free'}
--            {'other', what the key holds}
--
-- The request is kept as well as published: a holder that was not listening yet sees it when it next asks.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  return {'free'}
elseif kind ~= 'hash' or redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
  return {'other', kind == 'hash' and 'read-write lock' or kind}
end
local holder = redis.call('HLEN', KEYS[1]) == 1 and redis.call('HGETALL', KEYS[1]) or {}
if not tonumber(holder[2]) then
  return {'other', 'hash that is no lock'}
end
local info = redis.call('HGET', KEYS[2], holder[1])
if holder[1] ~= ARGV[1] then
  return {'changed', holder[1], tonumber(holder[2]), info}
end
redis.call('SET', KEYS[3], ARGV[1] .. '\n' .. ARGV[2], 'PX', ARGV[3])
return {'asked', holder[1], tonumber(holder[2]), info, redis.call('PUBLISH', ARGV[4], 'force')}
