--+ plain
-- exclusive_ask: tell the holder, if it is the owner, that somebody wants its lock. The first step of
-- force-unlock.
--
--   ARGV[4]  by whom, for people
--   ARGV[5]  for how many milliseconds the request stands
--
--   returns  {'asked', owner, count, info or false, how many heard it}
--            {'changed', owner, count, info or false}   somebody else holds it by now
--            {'free'}
--            {'other', what the key holds}
--
-- The request is kept as well as published: a holder that was not listening yet sees it when it next asks.
local state, owner, count = look()
if state ~= 'held' then
  return {state, owner}
end
local info = redis.call('HGET', HOLDER, owner)
if owner ~= OWNER then
  return {'changed', owner, count, info}
end
redis.call('SET', FORCE, OWNER .. '\n' .. ARGV[4], 'PX', ARGV[5])
return {'asked', owner, count, info, redis.call('PUBLISH', EARS_OF .. OWNER, 'force')}
