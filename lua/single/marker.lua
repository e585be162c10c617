-- marker: since when a server of a quorum has its data, and how long locks there last. The first client that asks writes the
-- marker; each grant of the server reads it. Needs no library.
--
--   KEYS[1]  "SINCE RUN LONGEST BEFORE BEGAN SURE"
--              SINCE    since when the server has its data, in ms by its clock
--              RUN      the run_id of the server process that wrote the marker
--              LONGEST  the longest ttl in the period that began at BEGAN
--              BEFORE   the longest ttl in the period before
--              SURE     1 if the server counts (core/lock/marker.h)
--   ARGV     Marker of core/lock/calls.h
--
--   returns  MarkerAge
--
-- A server that was flushed, or started empty, has no marker. A server that was started with a snapshot has the marker of another
-- run, and may lack what was written after the snapshot. So has a replica that was promoted. For all of them, and for a server
-- whose clock was set back behind its marker, SINCE begins anew.
--
-- A ttl is in use for a day, or for its length if that is longer, after a client last told it. A client that renews a lock tells
-- its ttl once an hour.
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
if ARGV[@marker.since@] == string.format('%.0f', since) then
  sure = '1'
end
if now - began > math.max(PERIOD, longest, before) then
  longest, before, began = 0, longest, now
end
longest = math.max(longest, tonumber(ARGV[@marker.ttl@]))

local marker = string.format('%.0f %s %.0f %.0f %.0f %s', since, run, longest, before, began, sure)
if marker ~= found or redis.call('PTTL', KEYS[1]) < MEMORY / 2 then
  redis.call('SET', KEYS[1], marker, 'PX', string.format('%.0f', MEMORY))
end
return {now - since, math.max(longest, before), since, tonumber(sure)}
