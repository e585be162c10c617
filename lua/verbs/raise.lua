-- raise: makes the fencing number of a lock that OWNER still holds at least this number (core/lock/calls.h, Raise).
--
--   returns  Raised; Lost: see lost_reply() in lib/queue.lua
if not holds(OWNER) then
  return lost_reply()
end
if (tonumber(redis.call('GET', FENCE)) or 0) < tonumber(ARGV[@raise.fence@]) then
  redis.call('SET', FENCE, ARGV[@raise.fence@], 'PX', FENCE_MEMORY)
end
if redis.call('HEXISTS', HOLDER, OWNER) == 1 then
  redis.call('HSET', HOLDER, 'agreed:' .. OWNER, ARGV[@raise.fence@])
end
return {'raised'}
