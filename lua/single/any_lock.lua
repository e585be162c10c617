-- any_lock: whether a lock of any kind is held. Looks at every key, before the small private server of `local:` ends by itself.
-- Needs no library.
--
--   returns  1 if a key may be a lock that is held, else 0. A key beside a lock is no lock. The number of permits, which has no ttl,
--            is none either; a sorted set has each permit that is held, with its expiry.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local function may_be_held(key)
  if string.find(key, '^rlock:') or string.find(key, '^redisson_lock_token:') then
    return false
  end
  local kind = redis.call('TYPE', key).ok
  return kind == 'hash' or kind == 'string' and redis.call('PTTL', key) >= 0
    or kind == 'zset' and redis.call('ZCOUNT', key, '(' .. now_ms, '+inf') > 0
end

local cursor = '0'
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  for _, key in ipairs(page[2]) do
    if may_be_held(key) then
      return 1
    end
  end
  cursor = page[1]
until cursor == '0'
return 0
