-- ask: tell the holder, if it is the owner, that somebody wants its lock. The first step of
-- force-unlock.
--
--   ARGV[6]  by whom, for people
--   ARGV[7]  for how many milliseconds the request stands
--
--   returns  {'asked', owner, count, info or false, how many heard it}
--            {'changed', owner, count, info or false}   somebody else holds it by now
--            {'free'}
--            {'other', what the key holds}
--
-- The request is kept as well as published: a holder that was not listening yet sees it when it next asks.
local held = holds(OWNER)
if not held then
  return not_held()
end
local info = redis.call('HGET', HOLDER, OWNER)
demand(ARGV[6], ARGV[7])
tell_trouble('asked\0' .. OWNER .. '\0by\0' .. ARGV[6])
return {'asked', OWNER, held, info, tell(OWNER, 'force')}
