--+ plain
-- exclusive_renew: push back the expiry of a lock that is still ours.
--
--   ARGV[4]  ttl in milliseconds; 0 only asks
--
--   returns  {'kept', request or false}
--            {'lost', type of the key, new owner or false, its info or false, request or false}
--            request is "owner\nby"; whether it means us is for the caller to see
--
-- Never re-creates a key that is gone: somebody may have worked under it meanwhile. Never shortens: an outer
-- hold may count on more. PEXPIRE, because it is allowed when memory is full.
if not mine() then
  return lost()
end
if redis.call('PTTL', LOCK) < tonumber(ARGV[4]) then
  redis.call('PEXPIRE', LOCK, ARGV[4])
  redis.call('PEXPIRE', HOLDER, ARGV[4])
end
return {'kept', redis.call('GET', FORCE)}
