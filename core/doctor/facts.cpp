// SPDX-License-Identifier: Apache-2.0
#include "doctor/facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include "doctor/ask_group.h"
#include "doctor/probe.h"
#include "redis/sentinel.h"
#include "redis/transport.h"

namespace rlock {

Fields Fields::of_info(std::string_view text)
{
  Fields fields;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = line.substr(0, line.find('\r'));
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) {
      fields.set(std::string(line.substr(0, colon)), std::string(line.substr(colon + 1)));
    }
  }
  return fields;
}

std::optional<std::string> Fields::text(std::string_view name) const
{
  const auto at = m_all.find(name);
  return at == m_all.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::int64_t> Fields::number(std::string_view name) const
{
  const auto at = m_all.find(name);
  if (at == m_all.end()) {
    return std::nullopt;
  }
  const std::string& digits = at->second;
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
  constexpr std::int64_t most = std::int64_t{1} << 53;  // rules multiply it, by 100 at most
  return whole ? std::optional(std::clamp(value, -most, most)) : std::nullopt;
}

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

int number_of_version(std::string_view text)
{
  std::array<int, 3> parts{};
  for (int& part : parts) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), part);
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(read.ptr - text.data()) + 1));
  }
  constexpr int most = 999;  // no version has so many parts; the sum cannot overflow
  for (int& part : parts) {
    part = std::clamp(part, 0, most);
  }
  return parts[0] * 10'000 + parts[1] * 100 + parts[2];
}

namespace {

constexpr int round_trips = 20;
constexpr auto settings = std::to_array<std::string_view>(
    {"appendfsync", "save", "min-replicas-to-write", "timeout", "busy-reply-threshold", "lua-time-limit", "port",
     "tls-port", "bind", "protected-mode", "cluster-require-full-coverage", "cluster-allow-pubsubshard-when-down"});

class ServerQueries {
 public:
  ServerQueries(Transport& transport, const CollectOptions& options, const Clock& clock)
      : m_transport(transport), m_options(options), m_clock(clock)
  {
  }

  // Every user of rlock may call TIME. It tells the round trip and the clock.
  Result<ClockSample> clock_sample()
  {
    const std::array<std::string_view, 1> argv{"TIME"};
    const Instant sent = m_clock.now();
    ASSIGN_OR_RETURN(const auto reply, m_transport.call(route(), argv, limit()));
    const Instant answered = m_clock.now();
    const auto seconds = part(reply, 0);
    const auto micros = part(reply, 1);
    if (seconds == 0) {
      return Error{ErrorCode::internal, "the answer to TIME makes no sense"};
    }
    return ClockSample{.sent_at = sent,
                       .heard_at = answered,
                       .server = std::chrono::seconds(seconds) + std::chrono::microseconds(micros)};
  }

  Result<Fields> info()
  {
    const std::array<std::string_view, 1> argv{"INFO"};
    const auto reply = m_transport.call(route(), argv, limit());
    return reply ? Result(Fields::of_info(reply->text)) : Result<Fields>(reply.error());
  }

  // Sends a request for each setting, because CONFIG GET takes one pattern before Redis 7. An unknown setting is no error.
  Result<Fields> config()
  {
    std::vector<Request> requests;
    requests.reserve(settings.size());
    for (const std::string_view name : settings) {
      requests.push_back({.route_key = route(), .words = {"CONFIG", "GET", std::string(name)}});
    }
    Fields fields;
    for (const auto& reply : m_transport.call_each(requests, limit())) {
      if (!reply) {
        return reply.error();
      }
      for (std::size_t i = 0; i + 1 < reply->elements.size(); i += 2) {
        fields.set(reply->elements[i].text, reply->elements[i + 1].text);
      }
    }
    return fields;
  }

 private:
  [[nodiscard]] const std::string& route() const { return m_options.name.text(); }
  [[nodiscard]] CallLimits limit() const { return {m_clock.now() + m_options.timeout, StopToken::never()}; }

  static std::int64_t part(const Reply& reply, std::size_t at)
  {
    std::int64_t value = 0;
    if (at < reply.elements.size()) {
      const std::string& digits = reply.elements[at].text;
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
    }
    constexpr std::int64_t most = std::int64_t{1} << 32;  // the year 2106 in seconds; later times could overflow
    return std::clamp(value, -most, most);
  }

  Transport& m_transport;
  const CollectOptions& m_options;
  const Clock& m_clock;
};

// A user that cannot log in is refused everything.
bool is_shut_out(const Facts& facts)
{
  return !facts.info && !facts.probe && facts.probe.error().code == ErrorCode::refused;
}

bool is_on_this_host(const Endpoint& endpoint)
{
  const std::vector<HostPort> all = endpoint.addresses();
  return std::all_of(all.begin(), all.end(), [](const HostPort& at) { return is_loopback(at.host); });
}

// Deletes a key that does not exist. `anonymous` leads to the same server without a name and a password.
Anonymous try_to_delete(Transport& anonymous, const LockName& name, const CallLimits& limit)
{
  const std::array<std::string_view, 2> argv{"DEL", name.text()};
  const auto reply = anonymous.call(name.text(), argv, limit);
  if (reply) {
    return Anonymous::may_delete;
  }
  return reply.error().code == ErrorCode::refused ? Anonymous::refused : Anonymous::unknown;
}

// Facts::host: the host of the only server that the URL names; empty: the URL names sentinels, or the nodes of a cluster.
std::string host_of(const Endpoint& endpoint)
{
  if (endpoint.has_group()) {
    return {};
  }
  return is_on_this_host(endpoint) ? "this host" : endpoint.host;
}

// Facts::node, as redis-cli needs it.
std::string node_of(const Endpoint& endpoint)
{
  const std::vector<HostPort> all = endpoint.addresses();
  return endpoint.is_sentinel_group() || all.empty() ? "" : show(all.front());
}

void add_clock_sample(Facts& facts, ServerQueries& server)
{
  if (auto sample = server.clock_sample()) {
    facts.clock_samples.push_back(*sample);
    facts.local_time = Millis(wall_clock_ms());
  }
}

// Asks the server itself; stops at the first question if there is no answer.
void ask_the_server(Facts& facts, ServerQueries& server, Transport& transport, const CollectOptions& options,
                    const Clock& clock, Rng& rng)
{
  const auto first = server.clock_sample();
  const bool refused = !first && first.error().code == ErrorCode::refused;
  if (!first && !refused) {
    facts.failure = first.error();
    return;
  }
  for (int i = 0; first && i < round_trips; ++i) {
    add_clock_sample(facts, server);
  }
  facts.info = server.info();
  facts.config = server.config();
  facts.probe = probe_lock(transport, options.name, options.ttl, options.timeout, clock, rng);
  if (refused && is_shut_out(facts)) {
    facts.failure = first.error();
    return;
  }
  if (transport.is_cluster() || (facts.info && facts.info->text("redis_mode") == "cluster")) {
    facts.cluster = doctor::ask_cluster(transport, options.name.text(), options.timeout, clock);
  }
}

// A cluster that does not know which nodes serve the slots answers no request for a key, but its nodes tell why.
void ask_a_node(Facts& facts, const Endpoint& endpoint, const CollectOptions& options, const Clock& clock)
{
  for (const HostPort& at : endpoint.nodes) {
    Direct direct(server_at(endpoint, at), clock);
    auto answer = doctor::ask_cluster(direct, "", options.timeout, clock);
    if (answer.info) {
      facts.cluster = std::move(answer);
      return;
    }
  }
}

// A sentinel answers none of these questions. A connection that is for locks says what the server is.
void ask_what_it_is(Facts& facts, Endpoint endpoint, const CollectOptions& options, const Clock& clock)
{
  if (endpoint.has_group() || endpoint.is_private()) {
    return;
  }
  endpoint.refuses_replica = true;
  Direct direct(std::move(endpoint), clock);
  const std::array<std::string_view, 1> argv{"PING"};
  const auto reply = direct.call("", argv, {clock.now() + options.timeout, StopToken::never()});
  if (!reply && reply.error().code == ErrorCode::config) {
    facts.failure = reply.error();
  }
}

}  // namespace

Endpoint without_password(Endpoint endpoint)
{
  endpoint.user.clear();
  endpoint.password.clear();
  endpoint.password_file.clear();
  return endpoint;
}

Facts collect_facts(Transport& transport, Transport& anonymous, const Endpoint& endpoint, const CollectOptions& options,
                    const Clock& clock, Rng& rng)
{
  Facts facts;
  facts.server = endpoint.shown();
  facts.user = endpoint.user;
  facts.node = node_of(endpoint);
  facts.host = host_of(endpoint);
  facts.asked_on_its_host = is_on_this_host(endpoint);
  ServerQueries server(transport, options, clock);
  ask_the_server(facts, server, transport, options, clock, rng);
  if (facts.failure) {
    ask_a_node(facts, endpoint, options, clock);
    ask_what_it_is(facts, endpoint, options, clock);
  } else {
    facts.anonymous = try_to_delete(anonymous, options.name, {clock.now() + options.timeout, StopToken::never()});
  }
  if (endpoint.is_sentinel_group()) {
    facts.sentinels = doctor::ask_sentinels(endpoint, options.timeout, clock);
  }
  facts.certificates = doctor::ask_certificates(endpoint, facts, options.timeout, clock);
  if (!facts.clock_samples.empty()) {
    clock.sleep_until(facts.clock_samples.front().sent_at + std::chrono::seconds{1}, StopToken::never());
    add_clock_sample(facts, server);
  }
  return facts;
}

}  // namespace rlock
