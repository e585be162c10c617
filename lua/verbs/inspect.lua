-- inspect: returns what the server knows about a lock. Changes nothing.
--
--   ARGV[6]  the index of the first entry of the event log to return, such as -128; or nothing
--
--   returns  {'known', fence, pttl, how many may hold it (permits; else 0, also if their number is gone), how many do,
--             {owner, count, mode, info or false, ms since the grant or -1, 1 if its renewals are refused (force.lua) or 0, owner, …},
--             {waiter, mode, its info, 1 if it is alive or 0 if it does not listen, waiter, …}, agreed,
--             1 if the key is provably a lock,
--             when a job last succeeded under it, in microseconds, or false, ms until the server forgets that, now in microseconds,
--             the entries of the event log, if ARGV[6] asks for them}
--               fence: of the holder, if there is only one; else the last number that the server gave out
--            {'other', what the key holds}
--
-- The reply leaves out the waiters behind the first thousand.

-- The kind of a lock whose key does not exist: permits outlive their number.
local function kind_without_key()
  local permits = NAME ~= 'permits' and redis.pcall('ZCOUNT', SECOND, '(' .. math.floor(now_us() / 1000), '+inf')
  return type(permits) == 'number' and permits > 0 and 'permits' or NAME
end

local kind = redis.call('EXISTS', LOCK) == 1 and kind_at_key(NAME) or kind_without_key()
if kind ~= NAME then
  return {'other', kind}
end

local now = now_us()

-- ms since the grant, by the fencing number, which is the time of the grant, or later if the server's clock was set back; -1:
-- unknown.
local function age_of(fence)
  local granted = tonumber(fence)
  return granted and math.max(0, math.floor((now - granted) / 1000)) or -1
end

local found, holder_rows = holders(), {}
for i = 1, #found, 3 do
  for part = 0, 2 do
    holder_rows[#holder_rows + 1] = found[i + part]
  end
  local about = redis.call('HMGET', HOLDER, found[i], 'fence:' .. found[i])
  holder_rows[#holder_rows + 1] = about[1]
  holder_rows[#holder_rows + 1] = age_of(about[2])
  -- A user that may only look at the lock may have no right to this key.
  holder_rows[#holder_rows + 1] = redis.pcall('HGET', FORCE, 'revoked:' .. found[i]) == '1' and 1 or 0
end

local waiters, waiter_rows = redis.call('ZRANGE', QUEUE, 0, 999, 'WITHSCORES'), {}
for i = 1, #waiters, 2 do
  waiter_rows[#waiter_rows + 1] = waiters[i]
  waiter_rows[#waiter_rows + 1] = redis.call('HGET', WAITERS, 'wish:' .. waiters[i]) or ''
  waiter_rows[#waiter_rows + 1] = redis.call('HGET', WAITERS, waiters[i]) or ''
  waiter_rows[#waiter_rows + 1] = is_alive(waiters[i], waiters[i + 1]) and 1 or 0
end

-- 1 if the key is provably a lock, else 0. A hash {prod: 5} or a string may be the data of another program. A lock of rlock has a
-- record of its holder; a lock of Redisson has its shape.
local function is_proven()
  for i = 1, #found, 3 do
    if redis.call('HEXISTS', HOLDER, found[i]) == 0 and not is_redisson_hold(found[i]) then
      return 0
    end
  end
  return 1
end

local limit, holder_count = capacity(found)
local fence, agreed = fence_of(#found == 3 and found[1] or '')
return {'known', fence, #found > 0 and next_expiry_ms() or 0, limit, holder_count, holder_rows, waiter_rows, agreed,
        is_proven(), redis.call('GET', DONE), redis.call('PTTL', DONE), string.format('%.0f', now),
        ARGV[6] and redis.call('LRANGE', EVENTS, ARGV[6], -1)}
