-- inspect: what is known about a lock. Changes nothing.
--
--   returns  {'known', fence, pttl, how many may hold it (permits; else 0, as where their number is gone), how many do,
--             {owner, count, wish, info or false, owner, …}, {waiter, wish, its info, waiter, …}, agreed}
--               fence: of the holder, where there is one alone; else the last number given out
--            {'other', what the key holds}
--
-- Waiters that nobody can wake any more are left out, and so are those behind the first thousand.

-- The permits of those who hold one outlive their number.
local function kind_without_key()
  local permits = NAME ~= 'permits' and redis.pcall('ZCOUNT', SECOND, '(' .. math.floor(now() / 1000), '+inf')
  return type(permits) == 'number' and permits > 0 and 'permits' or NAME
end

local kind = redis.call('EXISTS', LOCK) == 1 and kind_there(NAME) or kind_without_key()
if kind ~= NAME then
  return {'other', kind}
end

local found, holding = holders(), {}
for i = 1, #found, 3 do
  for part = 0, 2 do
    holding[#holding + 1] = found[i + part]
  end
  holding[#holding + 1] = redis.call('HGET', HOLDER, found[i])
end

local waiters, waiting = redis.call('ZRANGE', QUEUE, 0, 999, 'WITHSCORES'), {}
for i = 1, #waiters, 2 do
  if is_there(waiters[i], waiters[i + 1]) then
    waiting[#waiting + 1] = waiters[i]
    waiting[#waiting + 1] = redis.call('HGET', WAITERS, 'wish:' .. waiters[i]) or ''
    waiting[#waiting + 1] = redis.call('HGET', WAITERS, waiters[i]) or ''
  end
end

local most, count = room(found)
local fence, agreed = number_of(#found == 3 and found[1] or '')
return {'known', fence, #found > 0 and next_change() or 0, most, count, holding, waiting, agreed}
