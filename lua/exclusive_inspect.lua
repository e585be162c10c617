--+ plain
-- exclusive_inspect: what is known about a lock. Changes nothing.
--
--   returns  {'known', fence, pttl, owner or '', count, info or false, waiter, its info, waiter, …}
--            {'other', what the key holds}
--
-- Waiters that nobody can wake any more are left out, and so are those behind the first thousand.
local state, owner, count = look()
if state == 'other' then
  return {'other', owner}
end
local held = state == 'held'
local answer = {'known', redis.call('GET', FENCE) or '0', held and redis.call('PTTL', LOCK) or 0,
                owner or '', count or 0, held and redis.call('HGET', HOLDER, owner)}
local waiters = redis.call('ZRANGE', QUEUE, 0, 999, 'WITHSCORES')
local moment = #waiters > 0 and now()
for i = 1, #waiters, 2 do
  local listens = redis.call('PUBSUB', 'NUMSUB', EARS_OF .. waiters[i])[2] > 0
  if listens or moment - tonumber(waiters[i + 1]) < YOUNG then
    answer[#answer + 1] = waiters[i]
    answer[#answer + 1] = redis.call('HGET', WAITERS, waiters[i]) or ''
  end
end
return answer
