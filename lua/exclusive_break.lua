-- exclusive_break: take a lock away from an owner that did not let go. The second step of force-unlock.
--
--   KEYS[1]  the lock: hash {owner: hold count}
--   KEYS[2]  what holders tell about themselves
--   KEYS[3]  who asked whom to let go: "owner\nby"; stays, so that the holder learns by whom
--   KEYS[4]  what happened lately: stream
--   KEYS[5]  the waiters of Redisson's fair lock: list
--   ARGV[1]  owner who is meant
--   ARGV[2]  by whom, for people
--   ARGV[3]  for how many milliseconds that is remembered
--   ARGV[4]  the owner's channel
--   ARGV[5]  channel that hears of the release; with ":" and a name, one fair waiter's
--
--   returns  {'broken', owner, count, info or false}
--            {'changed', owner, count, info or false}   somebody else holds it; nothing was changed
--            {'free'}
--            {'other', what the key holds}
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
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SET', KEYS[3], ARGV[1] .. '\n' .. ARGV[2], 'PX', ARGV[3])
redis.call('XADD', KEYS[4], 'MAXLEN', '~', 128, '*', 'forced', ARGV[1], 'by', ARGV[2])
redis.call('PEXPIRE', KEYS[4], ARGV[3])
redis.call('PUBLISH', ARGV[4], 'force')
redis.call('PUBLISH', ARGV[5], '0')
local fair = redis.call('LINDEX', KEYS[5], 0)
if fair then
  redis.call('PUBLISH', ARGV[5] .. ':' .. fair, '0')
end
return {'broken', holder[1], tonumber(holder[2]), info}
