-- raise: makes the fencing number of a lock that OWNER still holds at least this number. A lock on several servers needs
-- that, because each server counts for itself: from now on the owner has the number on which they agree.
--
--   ARGV[6]  the number
--
--   returns  {'raised'}
--            {'lost', …}   see lost_reply() in lib/queue.lua
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
