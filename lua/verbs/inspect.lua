-- inspect: what is known about a lock. Changes nothing.
--
--   returns  {'known', fence, pttl, how many may hold it (permits; else 0, as where their number is gone), how many do,
--             {owner, count, wish, info or false, owner, …}, {waiter, wish, its info, waiter, …}, agreed, 1 if it is provably a lock,
--             when a job last succeeded under it, in microseconds, or false, ms until that is forgotten, now in microseconds}
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

-- A hash {prod: 5} or a string may be the data of another program. A lock of rlock has a record of its holder, one of
-- Redisson its shape.
local function is_proven()
  for i = 1, #found, 3 do
    if redis.call('HEXISTS', HOLDER, found[i]) == 0 and not is_redissons(found[i]) then
      return 0
    end
  end
  return 1
end

local most, count = room(found)
local fence, agreed = number_of(#found == 3 and found[1] or '')
return {'known', fence, #found > 0 and next_change() or 0, most, count, holding, waiting, agreed, is_proven(), redis.call('GET', DONE),
        redis.call('PTTL', DONE), string.format('%.0f', now())}
