-- break: take a lock away from the owner, which did not let go. The second step of force-unlock.
--
--   ARGV[6]  by whom, for people
--
--   returns  {'broken', owner, count, info or false}
--            {'changed', owner, count, info or false}   somebody else holds it; nothing was changed
--            {'free'}
--            {'other', what the key holds}
--
-- The request stays, so that the holder learns by whom when it wakes.
local held = holds(OWNER)
if not held then
  return not_held()
end
local info = redis.call('HGET', HOLDER, OWNER)
forget(OWNER)  -- first: a full memory refuses some of what remove() does, but not after a write that it allows
remove(OWNER)
demand(ARGV[6], NOTE_MEMORY)
parting = 'forced\0' .. string.gsub(OWNER, '%z', '?') .. '\0by\0' .. ARGV[6]
tell(OWNER, 'force')
pass_on(0)
return {'broken', OWNER, held, info}
