-- runs: the list of runs of a lock that its event log has forgotten, or soon will have. core/lock/kept_runs.h has the format of its
-- elements. Needs no library.
--
--   KEYS[1]  the list: texts, the oldest first
--   ARGV[1]  read, keep, replace or forget (core/lock/calls.h, ReadRuns to ForgetRuns)
--
--   returns  read: the elements. forget: 1, or 0 if there was none. keep: how many elements there are. replace: the same; -1: the list has changed meanwhile
--
-- A client that sends `keep` twice appends the same runs twice, and a reader counts them once.
local RUNS = KEYS[1]

if ARGV[1] == 'read' then
  return redis.call('LRANGE', RUNS, ARGV[@read_runs.from@], -1)
end

if ARGV[1] == 'forget' then
  return redis.call('DEL', RUNS)
end

local memory, most = tonumber(ARGV[@keep_runs.memory@]), tonumber(ARGV[@keep_runs.most@])
local first, rest = @keep_runs.chunks@, {}
if ARGV[1] == 'replace' then
  local old = tonumber(ARGV[@replace_runs.old@])
  if redis.call('LINDEX', RUNS, old - 1) ~= ARGV[@replace_runs.last@] then
    return -1
  end
  first, rest = @replace_runs.chunks@, redis.call('LRANGE', RUNS, old, -1)
end

-- A full memory refuses RPUSH before it has changed anything, and allows it after DEL. A list that DEL or LTRIM has emptied has no
-- ttl.
local left = math.max(redis.call('PTTL', RUNS), memory)
if ARGV[1] == 'replace' then
  redis.call('DEL', RUNS)
end
local count = 0
for i = first, #ARGV do
  count = redis.call('RPUSH', RUNS, ARGV[i])
end
for _, element in ipairs(rest) do
  count = redis.call('RPUSH', RUNS, element)
end
redis.call('LTRIM', RUNS, -most, -1)
redis.call('PEXPIRE', RUNS, string.format('%.0f', left))
return math.min(count, most)
