// SPDX-License-Identifier: Apache-2.0
#include "fault/rival.h"

#include "engine/lock_keys.h"
#include "lock/lease_budget.h"

#include <algorithm>
#include <stdexcept>

namespace rlock::test {
namespace {

constexpr Millis plenty_of_time{5000};
// A client that is gone may block the lock for a ttl, or for as long as a waiter may take to confirm a hand-over.
Millis longest_block(Millis ttl) { return std::max(ttl, handover_confirmation); }

// All keys of the locks whose names begin with KEYS' prefix. The number of permits has no ttl.
constexpr const char* look_at_ttls = R"(
local bad = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local ttl = redis.call('PTTL', key)
  local lasts = ARGV[3] == 'permits' and (string.sub(key, 1, 1) == 'k' or string.sub(key, -8) == ':timeout')
  if ttl == -1 and not lasts then
    bad[#bad + 1] = key .. ' has no ttl'
  elseif string.sub(key, 1, 1) == 'k' and ttl > tonumber(ARGV[2]) then
    bad[#bad + 1] = key .. ' has a ttl of ' .. ttl
  end
end
return bad)";

// The texts of all keys, the server's time in ms, and when the first of them expires.
constexpr const char* keys_script = R"(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local keys, text, expires = redis.call('KEYS', ARGV[1]), '', math.huge
table.sort(keys)
for _, key in ipairs(keys) do
  local ttl = redis.call('PTTL', key)
  if ttl >= 0 then
    expires = math.min(expires, now + ttl)
  end
  local kind, words = redis.call('TYPE', key).ok, {}
  if kind == 'hash' then
    words = redis.call('HGETALL', key)
    for i = 1, #words, 2 do
      local is_time = string.sub(words[i], 1, 6) == 'stops:'
      words[i] = words[i] .. '=' .. (is_time and 'time' or words[i + 1])
    end
    for i = #words, 2, -2 do table.remove(words, i) end
    table.sort(words)
  elseif kind == 'list' then words = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then words = redis.call('ZRANGE', key, 0, -1)
  elseif kind == 'string' then words = {redis.call('GET', key)}
  end
  text = text .. key .. ': ' .. table.concat(words, ', ') .. '\n'
end
return {(string.gsub(text, '%z', ' ')), now, expires < math.huge and expires or -1})";

template <typename T>
T answer_of(Result<T> result)
{
  if (!result) {
    throw std::runtime_error("the server does not answer the test: " + result.error().text);
  }
  return *std::move(result);
}

std::unique_ptr<LockStore> open_direct(const std::vector<std::unique_ptr<RedisServer>>& servers, const Clock& clock)
{
  ServerSpec spec;
  for (const auto& server : servers) {
    spec.endpoints.push_back(*parse_server(server->direct_url()));
  }
  spec.restart_guard = false;
  spec.timeout = plenty_of_time;
  return answer_of(open_store(spec, clock, StopToken::never()));
}

// The keys of one run have a prefix in common.
std::string glob_of(const std::vector<std::string>& keys)
{
  return "*" + keys.front().substr(0, keys.front().find('-')) + "-*";
}

}  // namespace

Rival::Rival(const std::vector<std::unique_ptr<RedisServer>>& servers, std::vector<std::string> keys, LockKind kind,
             Millis ttl, Claims& claims)
    : m_keys(std::move(keys)), m_mode(kind), m_ttl(ttl), m_claims(claims), m_store(open_direct(servers, m_clock))
{
  for (const auto& server : servers) {
    m_servers.push_back(answer_of(Connection::open(*parse_server(server->direct_url()), m_clock, soon())));
  }
}

void Rival::try_to_overlap()
{
  if (m_claims.any()) {
    try_for(m_keys.front(), [] {});
  }
}

bool Rival::try_once(const std::function<void()>& while_held) { return try_for(m_keys.front(), while_held); }

bool Rival::gets_all()
{
  const Instant end = m_clock.now() + longest_block(m_ttl) + plenty_of_time;
  return std::ranges::all_of(m_keys, [&](const std::string& key) {
    bool granted = try_for(key, [] {});
    while (!granted && m_clock.now() < end) {
      m_clock.sleep_until(m_clock.now() + Millis{20}, StopToken::never());
      granted = try_for(key, [] {});
    }
    return granted;
  });
}

bool Rival::try_for(const std::string& key, const std::function<void()>& while_held)
{
  const std::lock_guard guard(m_mutex);
  const LockSpec spec = spec_of(key);
  const Owner owner = Owner::fresh(m_rng, 1);
  const auto attempt = m_store->acquire(spec, owner, {}, soon());
  const bool granted = attempt && std::holds_alternative<Granted>(*attempt);
  if (granted) {
    m_claims.claim("the rival", LeaseBudget(std::get<Granted>(*attempt).lease).valid_until());
    while_held();
    [[maybe_unused]] const auto released = m_store->release(spec, owner, {}, soon());
    m_claims.drop("the rival");
  }
  // A quorum gives back in the background what it did not get. A request that is sent twice meanwhile would get two answers.
  m_store->stop_threads();
  return granted;
}

bool Rival::sees_holder(const Owner& owner)
{
  const std::lock_guard guard(m_mutex);
  return std::ranges::all_of(m_keys, [&](const std::string& key) {
    const auto state = m_store->inspect(*LockName::parse(key), soon());
    return state && std::ranges::any_of(state->holders, [&](const Holder& holder) { return holder.owner == owner; });
  });
}

std::size_t Rival::waiters()
{
  const std::lock_guard guard(m_mutex);
  const auto state = m_store->inspect(*LockName::parse(m_keys.front()), soon());
  return state ? state->waiting.size() : 0;
}

bool Rival::sees_waiter(const std::string& label)
{
  const std::lock_guard guard(m_mutex);
  const auto state = m_store->inspect(*LockName::parse(m_keys.front()), soon());
  return state && std::ranges::any_of(state->waiting,
                                      [&](const Waiter& each) { return each.info && each.info->label == label; });
}

void Rival::look_at_keys()
{
  const bool permits = std::holds_alternative<Permits>(m_mode);
  const std::string glob = glob_of(m_keys);
  const std::string longest = std::to_string(longest_block(m_ttl).count());
  const std::lock_guard guard(m_mutex);
  for (std::size_t i = 0; i < m_servers.size(); ++i) {
    const Reply bad = ask_server(i, {"EVAL", look_at_ttls, "0", glob, longest, permits ? "permits" : ""});
    for (const Reply& key : bad.elements) {
      m_bad_keys.insert(key.text);
    }
  }
}

std::vector<std::string> Rival::bad_keys() const
{
  const std::lock_guard guard(m_mutex);
  return {m_bad_keys.begin(), m_bad_keys.end()};
}

KeysSeen Rival::keys_on(std::size_t server)
{
  const std::string glob = glob_of(m_keys);
  const std::lock_guard guard(m_mutex);
  const Reply seen = ask_server(server, {"EVAL", keys_script, "0", glob});
  return {.text = seen.elements.at(0).text,
          .now_ms = seen.elements.at(1).integer,
          .expires_ms = seen.elements.at(2).integer};
}

Reply Rival::ask_server(std::size_t server, const std::vector<std::string_view>& words)
{
  return answer_of(m_servers[server].call(words, soon()));
}

LockSpec Rival::spec_of(const std::string& key) const
{
  return {.name = *LockName::parse(key), .kind = m_mode, .ttl = m_ttl, .who = {.host = "rival", .pid = 1}, .once = {}};
}

CallLimits Rival::soon() const { return {.deadline = m_clock.now() + plenty_of_time, .stop = StopToken::never()}; }

}  // namespace rlock::test
