-- raise: see to it that the fencing number of a lock that is still ours is no less than this. For who holds it on
-- several servers, each of which counts for itself.
--
--   ARGV[5]  the number
--
--   returns  {'raised'}
--            {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, request or false}
if not holds(OWNER) then
  return lost()
end
if (tonumber(redis.call('GET', FENCE)) or 0) < tonumber(ARGV[5]) then
  redis.call('SET', FENCE, ARGV[5], 'PX', FENCE_MEMORY)
end
return {'raised'}
