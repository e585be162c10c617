-- marker: since when a server of a quorum has its data, and how long locks there last. Written by the first client that
-- asks, read again with each lock that the server grants. Needs no library.
--
--   KEYS[1]  "SINCE RUN LONGEST BEFORE BEGAN SURE": since when, in ms by this server's clock; run_id of the process that wrote it;
--            the longest ttl in the period that began at BEGAN, and in the one before; 1 once the server counts
--   ARGV[1]  ttl in milliseconds that a lock has, or 0
--   ARGV[2]  SINCE of an earlier reply: with that the server was found to count; or 0
--
--   returns  {ms for which the server has its data, the longest ttl in use in milliseconds, SINCE, SURE}
--
-- A server that was flushed, or started empty, has no marker. One that was started with a snapshot has the marker of
-- another run, and may lack what was written after the snapshot. So does a replica that was promoted. All of them count
-- from now on, as does a server whose clock was set back behind its own marker.
--
-- A ttl is in use for a day, or its own length, after it was last told. A client that renews a lock tells it once an
-- hour.
local MEMORY = 7776000000  -- ms without use until the marker is forgotten: 90 days, longer than any lease
local PERIOD = 86400000    -- ms, at least

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local found = redis.call('GET', KEYS[1]) or ''
local since, writer, longest, before, began, sure = string.match(found, '^(%d+) (%x+) (%d+) (%d+) (%d+) ([01])$')
since, longest, before, began = tonumber(since), tonumber(longest) or 0, tonumber(before) or 0, tonumber(began) or now

if not since or writer ~= run or now < since then
  since, sure = now, '0'
end
if ARGV[2] == string.format('%.0f', since) then
  sure = '1'
end
if now - began > math.max(PERIOD, longest, before) then
  longest, before, began = 0, longest, now
end
longest = math.max(longest, tonumber(ARGV[1]))

local marker = string.format('%.0f %s %.0f %.0f %.0f %s', since, run, longest, before, began, sure)
if marker ~= found or redis.call('PTTL', KEYS[1]) < MEMORY / 2 then
  redis.call('SET', KEYS[1], marker, 'PX', string.format('%.0f', MEMORY))
end
return {now - since, math.max(longest, before), since, tonumber(sure)}
