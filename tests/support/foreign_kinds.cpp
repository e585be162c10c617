// SPDX-License-Identifier: Apache-2.0
#include "support/foreign_kinds.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>

namespace rlock::test {
namespace {

// KEYS: the lock, the prefix of the owner's timeouts, the channel. ARGV: lease, owner.
constexpr const char* read_acquire = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read', ARGV[2], 1)
  redis.call('set', KEYS[2] .. ':1', 1, 'px', ARGV[1])
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if mode == 'read' or redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 1 then
  local hold = redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('set', KEYS[2] .. ':' .. hold, 1, 'px', ARGV[1])
  redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), tonumber(ARGV[1])))
  return nil
end
return redis.call('pttl', KEYS[1]))";

constexpr const char* write_acquire = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
local mine = ARGV[2] .. ':write'
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'write', mine, 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if mode == 'write' and redis.call('hexists', KEYS[1], mine) == 1 then
  redis.call('hincrby', KEYS[1], mine, 1)
  redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1]))";

constexpr const char* read_release = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('publish', KEYS[3], '0')
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
local left = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if left == 0 then
  redis.call('hdel', KEYS[1], ARGV[2])
end
redis.call('del', KEYS[2] .. ':' .. (left + 1))
if redis.call('hlen', KEYS[1]) > 1 then
  local most = 0
  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
    for hold = tonumber(redis.call('hget', KEYS[1], field)) or 0, 1, -1 do
      most = math.max(most, redis.call('pttl', '{' .. KEYS[1] .. '}:' .. field .. ':rwlock_timeout:' .. hold))
    end
  end
  if most > 0 then
    redis.call('pexpire', KEYS[1], most)
    return 0
  end
  if mode == 'write' then
    return 0
  end
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[3], '0')
return 1)";

constexpr const char* write_release = R"(
local mode = redis.call('hget', KEYS[1], 'mode')
local mine = ARGV[2] .. ':write'
if not mode then
  redis.call('publish', KEYS[3], '1')
  return nil
end
if mode ~= 'write' or redis.call('hexists', KEYS[1], mine) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], mine, -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('hdel', KEYS[1], mine)
if redis.call('hlen', KEYS[1]) == 1 then
  redis.call('del', KEYS[1])
  redis.call('publish', KEYS[3], '1')
else
  redis.call('hset', KEYS[1], 'mode', 'read')
end
return 1)";

constexpr const char* read_renew = R"(
local holds = tonumber(redis.call('hget', KEYS[1], ARGV[2]))
if not holds then
  return 0
end
for hold = 1, holds do
  redis.call('pexpire', KEYS[2] .. ':' .. hold, ARGV[1])
end
redis.call('pexpire', KEYS[1], ARGV[1])
return 1)";

// KEYS: the number, the expiries, the channel. ARGV: id, expiry, now.
constexpr const char* permit_acquire = R"(
local gone = redis.call('zrangebyscore', KEYS[2], 0, ARGV[3], 'limit', 0, 1)
if #gone > 0 then
  redis.call('zrem', KEYS[2], unpack(gone))
  local number = redis.call('incrby', KEYS[1], #gone)
  if number > 0 then
    redis.call('publish', KEYS[3], number)
  end
end
local number = redis.call('get', KEYS[1])
if number and tonumber(number) >= 1 then
  redis.call('decrby', KEYS[1], 1)
  redis.call('zadd', KEYS[2], ARGV[2], ARGV[1])
  return 'OK'
end
local first = redis.call('zrange', KEYS[2], 0, 0, 'WITHSCORES')
if first[1] and first[2] ~= '922337203685477' then
  return ':' .. first[2]
end
return nil)";

constexpr const char* permit_release = R"(
local expiry = redis.call('zscore', KEYS[2], ARGV[1])
if redis.call('zrem', KEYS[2], ARGV[1]) == 0 then
  return 0
end
redis.call('publish', KEYS[3], redis.call('incrby', KEYS[1], 1))
return tonumber(expiry) <= tonumber(ARGV[3]) and 0 or 1)";

std::string now_ms()
{
  using namespace std::chrono;
  return std::to_string(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

Reply checked(Reply reply)
{
  CAPTURE(show(reply));
  REQUIRE_FALSE(reply.is_error());
  return reply;
}

}  // namespace

std::optional<std::int64_t> ForeignReadWrite::eval(const std::string& script,
                                                   const std::vector<std::string>& args) const
{
  std::vector<std::string> words{"EVAL", script, "3", "k", "{k}:" + m_owner + ":rwlock_timeout", "redisson_rwlock:{k}"};
  words.insert(words.end(), args.begin(), args.end());
  const Reply reply = checked(m_server.command(words));
  return reply.kind == Reply::Kind::nil ? std::nullopt : std::optional{reply.integer};
}

std::optional<std::int64_t> ForeignReadWrite::read(int lease) const
{
  return eval(read_acquire, {std::to_string(lease), m_owner});
}
std::optional<std::int64_t> ForeignReadWrite::write(int lease) const
{
  return eval(write_acquire, {std::to_string(lease), m_owner});
}
std::optional<std::int64_t> ForeignReadWrite::end_read() const { return eval(read_release, {"0", m_owner}); }
std::optional<std::int64_t> ForeignReadWrite::end_write(int lease) const
{
  return eval(write_release, {std::to_string(lease), m_owner});
}
bool ForeignReadWrite::renew_read(int lease) const { return *eval(read_renew, {std::to_string(lease), m_owner}) == 1; }

bool ForeignPermits::set_permits(int number) const
{
  return as_int(m_server.command({"SETNX", "k", std::to_string(number)})) == 1;
}

std::string ForeignPermits::acquire(const std::string& id, std::int64_t lease) const
{
  const std::string now = now_ms();
  const Reply reply = checked(m_server.command({"EVAL", permit_acquire, "3", "k", "{k}:timeout", "redisson_sc:{k}", id,
                                                std::to_string(std::stoll(now) + lease), now}));
  return reply.text;
}

std::int64_t ForeignPermits::release(const std::string& id) const
{
  return as_int(
      m_server.command({"EVAL", permit_release, "3", "k", "{k}:timeout", "redisson_sc:{k}", id, "0", now_ms()}));
}

std::string permit_bytes(const std::string& hex)
{
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace rlock::test
