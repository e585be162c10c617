--+ plain
-- exclusive_break: take a lock away from the owner, which did not let go. The second step of force-unlock.
--
--   ARGV[4]  by whom, for people
--
--   returns  {'broken', owner, count, info or false}
--            {'changed', owner, count, info or false}   somebody else holds it; nothing was changed
--            {'free'}
--            {'other', what the key holds}
--
-- The request stays, so that the holder learns by whom when it wakes.
local state, owner, count = look()
if state ~= 'held' then
  return {state, owner}
end
local info = redis.call('HGET', HOLDER, owner)
if owner ~= OWNER then
  return {'changed', owner, count, info}
end
redis.call('DEL', LOCK, HOLDER)
redis.call('SET', FORCE, OWNER .. '\n' .. ARGV[4], 'PX', NOTE_MEMORY)
redis.call('XADD', EVENTS, 'MAXLEN', '~', 128, '*', 'forced', OWNER, 'by', ARGV[4])
redis.call('PEXPIRE', EVENTS, NOTE_MEMORY)
redis.call('PUBLISH', EARS_OF .. OWNER, 'force')
pass_on(0)
return {'broken', owner, count, info}
