-- inspect: returns what the server knows about a lock. Changes nothing.
--
--   returns  Known, Other (core/lock/calls.h)
--
-- The reply leaves out the waiters behind the first thousand.

-- The most frequent case: one owner holds a plain lock, HOLDER has the record of that owner, and no client waits. The shape of the
-- hash and the record prove that the key is a lock, so the script need not ask for its type.
if not MULTI_HOLDER then
  if NAME == 'lock' then
    local found = holders()  -- inline
    local owner = found[1]
    local record = owner and redis.call('HMGET', HOLDER, owner, 'fence:' .. owner, 'agreed:' .. owner)
    if record and record[1] and record[2] and redis.call('EXISTS', QUEUE) == 0 then
      local age = age_of(record[2])  -- inline
      local revoked = revoked_flag(owner)  -- inline
      local succeeded = redis.call('GET', DONE)
      return {'known', record[3] or record[2], redis.call('PTTL', LOCK), 0, 1,
              {owner, found[2], '', record[1], age, revoked}, {}, record[3] and 1 or 0, 1,
              succeeded, succeeded and redis.call('PTTL', DONE) or -2, string.format('%.0f', now_us()),
              ARGV[@inspect.log_from@] and redis.call('LRANGE', EVENTS, ARGV[@inspect.log_from@], -1)}
    end
  end
end

-- Otherwise.
-- The kind of a lock whose key does not exist: permits outlive their number.
local function kind_without_key()
  local permits = NAME ~= 'permits' and redis.pcall('ZCOUNT', SECOND, '(' .. math.floor(now_us() / 1000), '+inf')
  return type(permits) == 'number' and permits > 0 and 'permits' or NAME
end

local kind = redis.call('EXISTS', LOCK) == 1 and kind_at_key(NAME) or kind_without_key()
if kind ~= NAME then
  return {'other', kind}
end

-- A hash {prod: 5} or a string may be the data of another program. A lock of rlock has a record of its holder; a lock of Redisson
-- has its shape.
local found, holder_rows = holders(), {}
local is_proven, only_record = 1, {}
for i = 1, #found, 3 do
  local owner = found[i]
  local record = redis.call('HMGET', HOLDER, owner, 'fence:' .. owner, 'agreed:' .. owner)
  only_record = #found == 3 and record or only_record
  if not record[1] and not is_redisson_hold(owner) then
    is_proven = 0
  end
  for part = 0, 2 do
    holder_rows[#holder_rows + 1] = found[i + part]
  end
  holder_rows[#holder_rows + 1] = record[1]
  holder_rows[#holder_rows + 1] = age_of(record[2])
  holder_rows[#holder_rows + 1] = revoked_flag(owner)
end

local waiters, waiter_rows = redis.call('ZRANGE', QUEUE, 0, 999, 'WITHSCORES'), {}
for i = 1, #waiters, 2 do
  waiter_rows[#waiter_rows + 1] = waiters[i]
  local record = redis.call('HMGET', WAITERS, 'wish:' .. waiters[i], waiters[i], 'passed:' .. waiters[i])
  waiter_rows[#waiter_rows + 1] = record[1] or ''
  waiter_rows[#waiter_rows + 1] = record[2] or ''
  waiter_rows[#waiter_rows + 1] = is_alive(waiters[i], waiters[i + 1]) and 1 or 0
  waiter_rows[#waiter_rows + 1] = tonumber(record[3]) or 0
end

local limit, holder_count = capacity(found)
local fence, agreed = fence_in(only_record[3], only_record[2])
local succeeded = redis.call('GET', DONE)
return {'known', fence, #found > 0 and next_expiry_ms() or 0, limit, holder_count, holder_rows, waiter_rows, agreed,
        is_proven, succeeded, succeeded and redis.call('PTTL', DONE) or -2, string.format('%.0f', now_us()),
        ARGV[@inspect.log_from@] and redis.call('LRANGE', EVENTS, ARGV[@inspect.log_from@], -1)}
