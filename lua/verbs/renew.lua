-- renew: push back the expiry of a lock that is still ours.
--
--   ARGV[5]  ttl in milliseconds; 0 only asks
--
--   returns  {'kept', request or false}
--            {'lost', 'none' | 'held' | what the key holds, new owner or false, its info or false, request or false}
--            request is "owner\nby"; whether it means us is for the caller to see
--
-- Never re-creates a key that is gone: somebody may have worked under it meanwhile. Never shortens: an outer
-- hold may count on more. PEXPIRE, because it is allowed when memory is full.
if not holds(OWNER) then
  return lost()
end
if extend(OWNER, ARGV[5]) then
  keep_records(ARGV[5])
end
return {'kept', redis.call('GET', FORCE)}
