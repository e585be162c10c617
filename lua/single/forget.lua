-- forget: deletes what the server keeps of a lock of any kind that is free, all but its fencing number and its waiters. Needs no
-- library.
--
--   KEYS     ForgetKeys of core/lock/calls.h
--
--   returns  Forgotten
--
-- A number of permits has no ttl, and refuses the name to every other kind. It is deleted if rlock wrote it last, else it may be data of
-- another program. A holder's script looks for its grant in the log, so the log of a lock that is held stays.
local @unpack.forget_keys@

local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local kind = redis.call('TYPE', LOCK).ok
local is_own_number = kind == 'string' and redis.call('PTTL', LOCK) < 0 and redis.call('GET', LOCK) == redis.call('GET', OWN_NUMBER)
local live = redis.pcall('ZCOUNT', SECOND, '(' .. now_ms, '+inf')
if kind ~= 'none' and not is_own_number or live ~= 0 and type(live) == 'number' then
  return {0, 0}
end

local permits = is_own_number and redis.call('DEL', LOCK) or 0
if redis.call('DEL', OWN_NUMBER) == 1 and live == 0 then
  redis.call('DEL', SECOND)
end
redis.call('DEL', HOLDER, FORCE)
return {redis.call('DEL', EVENTS), permits}
