-- raise: see to it that the fencing number of a lock that is still ours is no less than this. For who holds it on
-- several servers, each of which counts for itself: the number they agree on is the owner's from now on.
--
--   ARGV[6]  the number
--
--   returns  {'raised'}
--            {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, who wanted it from us or false}
if not holds(OWNER) then
  return lost()
end
if (tonumber(redis.call('GET', FENCE)) or 0) < tonumber(ARGV[6]) then
  redis.call('SET', FENCE, ARGV[6], 'PX', FENCE_MEMORY)
end
if redis.call('HEXISTS', HOLDER, OWNER) == 1 then
  redis.call('HSET', HOLDER, 'agreed:' .. OWNER, ARGV[6])
end
return {'raised'}
