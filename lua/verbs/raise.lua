-- raise: makes the fencing number of a lock that OWNER still holds at least this number. A lock on several servers
-- needs it, because each server counts for itself: the number they agree on is the owner's from now on.
--
--   ARGV[6]  the number
--
--   returns  {'raised'}
--            {'lost', …}   as lost_reply() in lib/queue.lua
if not holds(OWNER) then
  return lost_reply()
end
if (tonumber(redis.call('GET', FENCE)) or 0) < tonumber(ARGV[6]) then
  redis.call('SET', FENCE, ARGV[6], 'PX', FENCE_MEMORY)
end
if redis.call('HEXISTS', HOLDER, OWNER) == 1 then
  redis.call('HSET', HOLDER, 'agreed:' .. OWNER, ARGV[6])
end
return {'raised'}
