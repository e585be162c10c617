-- skip: logs that the run of OWNER did not begin: the lock was busy, a newer run took its place, or the command cannot be executed
-- (core/lock/calls.h, Skip).
--
--   returns  Skipped
--
-- A crontab may try each minute to take a lock that one run holds for a week, and must not push all runs out of the log. So the
-- skips at the end of the log are those of SKIPS_IN_A_ROW clients at most, and the skips of one client (host, user, command,
-- label) for one reason are one entry, which counts them. The script moves that entry to the end, so that the log stays in the
-- order of time. The entry replaces `replaced OWNER`, which no request of OWNER needs any more.
--
-- A request that is sent twice counts once, because the entry names OWNER.
local SKIPS_IN_A_ROW = 2  -- so few that the log keeps a month of nights, also if many hosts have the same crontab
local INFO, WAITED, EXIT_CODE = ARGV[@skip.info@], ARGV[@skip.waited@], ARGV[@skip.exit_code@] or ''
local NEWER = ARGV[@skip.newer@] or ''

local function client_in(info)
  return (string.gsub(string.gsub(info, '@field.pid@%d+', ''), '@field.since@%d+', ''))
end

-- The owner that an entry of this kind is about; nil: the entry is of another kind.
local function owner_in(entry, kind)
  return string.match(entry, '^[%d.]+%z' .. kind .. '%z(%Z*)')
end

local function value_of(entry, name)
  return string.match(entry, '%z' .. name .. '%z(%Z*)')
end

local function is_alike(entry)
  local was_replaced = value_of(entry, '@word.by@') ~= nil
  return was_replaced == (NEWER ~= '') and client_in(value_of(entry, '@word.info@') or '') == client_in(INFO) and (value_of(entry, '@word.exit@') or '') == EXIT_CODE
end

local last = redis.call('LRANGE', EVENTS, -2 * SKIPS_IN_A_ROW, -1)
local begin = #last + 1
while begin > 1 and (owner_in(last[begin - 1], '@kind.skipped@') or owner_in(last[begin - 1], '@kind.replaced@')) do
  begin = begin - 1
end

local kept, skips, times = {}, 0, 1
for i = #last, begin, -1 do
  local skipped = owner_in(last[i], '@kind.skipped@')
  if skipped == OWNER then
    return {'skipped'}
  elseif skipped and is_alike(last[i]) then
    times = times + (tonumber(value_of(last[i], '@word.times@')) or 1)
  elseif skipped and skips < SKIPS_IN_A_ROW - 1 or not skipped and owner_in(last[i], '@kind.replaced@') ~= OWNER then
    table.insert(kept, 1, last[i])
    skips = skips + (skipped and 1 or 0)
  end
end

-- The holder; '': the lock is no longer held.
local function holder()
  local is_of_other_kind = redis.call('EXISTS', LOCK) == 1 and is_other_exclusive(kind_at_key(NAME))
  return holders()[1] or is_of_other_kind and holder_of_other_kind() or ''
end

local reason = EXIT_CODE ~= '' and '\0@word.exit@\0' .. EXIT_CODE or NEWER ~= '' and '\0@word.by@\0' .. NEWER
    or '\0@word.holder@\0' .. holder()

-- Cuts the entries off and writes them again. After LTRIM, which a full memory allows, the server also allows RPUSH. A list that
-- becomes empty loses its ttl, so the ttl is read before.
local memory = math.max(history_of(INFO), redis.call('PTTL', EVENTS))
if begin <= #last then
  redis.call('LTRIM', EVENTS, 0, begin - #last - 2)
end
for _, entry in ipairs(kept) do
  redis.call('RPUSH', EVENTS, entry)
end
append_event(memory, timestamp(),
    '@kind.skipped@\0' .. OWNER .. '\0@word.info@\0' .. INFO .. '\0@word.waited@\0' .. WAITED .. '\0@word.times@\0' .. times
        .. reason)
return {'skipped'}
