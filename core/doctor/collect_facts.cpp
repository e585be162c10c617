// SPDX-License-Identifier: Apache-2.0
#include "doctor/collect_facts.h"

#include "doctor/ask_group.h"
#include "doctor/probe.h"
#include "server/direct.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace rlock {
namespace {

using std::chrono_literals::operator""s;

constexpr int round_trips = 20;
constexpr auto settings =
    std::to_array<std::string_view>({"appendfsync", "save", "min-replicas-to-write", "timeout", "busy-reply-threshold",
                                     "lua-time-limit", "port", "tls-port", "bind", "protected-mode"});
constexpr auto cluster_settings =
    std::to_array<std::string_view>({"cluster-require-full-coverage", "cluster-allow-pubsubshard-when-down"});

class Examiner {
 public:
  Examiner(Transport& transport, const Examination& what, const Clock& clock)
      : m_transport(transport), m_what(what), m_clock(clock)
  {
  }

  // TIME is what every user of rlock may ask; it tells the round trip and the clock at once.
  Result<Tick> tick()
  {
    const std::array<std::string_view, 1> argv{"TIME"};
    const Instant sent = m_clock.now();
    const auto reply = m_transport.call(route(), argv, limit());
    if (!reply) {
      return reply.error();
    }
    const Instant answered = m_clock.now();
    const auto seconds = part(*reply, 0);
    const auto micros = part(*reply, 1);
    if (seconds == 0) {
      return Error{ErrorCode::internal, "the answer to TIME makes no sense"};
    }
    return Tick{.sent = sent,
                .answered = answered,
                .wall_us = wall_clock_ms() * 1000,
                .server_us = seconds * 1'000'000 + micros};
  }

  Result<Fields> info()
  {
    const std::array<std::string_view, 1> argv{"INFO"};
    const auto reply = m_transport.call(route(), argv, limit());
    return reply ? Result(Fields::of_info(reply->text)) : Result<Fields>(reply.error());
  }

  // One by one, for before Redis 7 it answers one pattern at a time; one that it does not know is no error.
  Result<Fields> config()
  {
    std::vector<std::string_view> names(settings.begin(), settings.end());
    if (m_transport.is_cluster()) {
      names.insert(names.end(), cluster_settings.begin(), cluster_settings.end());
    }
    std::vector<Request> requests;
    for (const std::string_view name : names) {
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
  [[nodiscard]] const std::string& route() const { return m_what.name.text(); }
  [[nodiscard]] CallLimits limit() const { return {m_clock.now() + m_what.timeout, StopToken::never()}; }

  static std::int64_t part(const Reply& reply, std::size_t at)
  {
    std::int64_t value = 0;
    if (at < reply.elements.size()) {
      const std::string& digits = reply.elements[at].text;
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
    }
    return value;
  }

  Transport& m_transport;
  const Examination& m_what;
  const Clock& m_clock;
};

template <typename T>
std::optional<T> if_told(Result<T> result)
{
  return result ? std::optional<T>(*std::move(result)) : std::nullopt;
}

// Whom the server does not let in is refused everything.
bool is_shut_out(const Facts& facts)
{
  return !facts.info && !facts.probe && facts.probe.error().fault == ErrorCode::refused;
}

bool is_on_this_host(const Endpoint& endpoint)
{
  if (endpoint.kind == Endpoint::Kind::cluster || endpoint.kind == Endpoint::Kind::sentinel) {
    const auto& nodes = endpoint.kind == Endpoint::Kind::cluster ? endpoint.nodes : endpoint.sentinels.hosts;
    return std::all_of(nodes.begin(), nodes.end(), [](const HostPort& node) { return is_loopback(node.host); });
  }
  return endpoint.kind != Endpoint::Kind::tcp || is_loopback(endpoint.host);
}

// Deletes a key that is not there. `anonymous`: a way to the same server without a name and a password.
Anonymous try_to_delete(Transport& anonymous, const LockName& name, const CallLimits& limit)
{
  const std::array<std::string_view, 2> argv{"DEL", name.text()};
  const auto reply = anonymous.call(name.text(), argv, limit);
  if (reply) {
    return Anonymous::may_delete;
  }
  return reply.error().fault == ErrorCode::refused ? Anonymous::refused : Anonymous::unknown;
}

std::string host_of(const Endpoint& endpoint)
{
  switch (endpoint.kind) {
    case Endpoint::Kind::tcp: return is_loopback(endpoint.host) ? "this host" : endpoint.host;
    case Endpoint::Kind::unix_socket:
    case Endpoint::Kind::local: return "this host";
    default: return {};
  }
}

// All that is asked of the server itself; until it does not answer.
void ask_the_server(Facts& facts, Examiner& ask, Transport& transport, const Examination& what, const Clock& clock,
                    Rng& rng)
{
  const auto first = ask.tick();
  const bool refused = !first && first.error().fault == ErrorCode::refused;
  if (!first && !refused) {
    facts.failure = first.error();
    return;
  }
  for (int i = 0; first && i < round_trips; ++i) {
    if (auto tick = ask.tick()) {
      facts.ticks.push_back(*tick);
    }
  }
  facts.info = if_told(ask.info());
  facts.config = if_told(ask.config());
  facts.probe = try_a_lock(transport, what.name, what.ttl, what.timeout, clock, rng);
  if (refused && is_shut_out(facts)) {
    facts.failure = first.error();
    return;
  }
  if (transport.is_cluster()) {
    facts.cluster = doctor::ask_cluster(transport, what.name.text(), what.timeout, clock);
  }
}

// A cluster that does not know who serves the slots answers nothing else; a node of it still tells why.
void ask_a_node(Facts& facts, const Endpoint& endpoint, const Examination& what, const Clock& clock)
{
  for (const HostPort& at : endpoint.nodes) {
    Endpoint node = endpoint;
    node.kind = Endpoint::Kind::tcp;
    node.host = at.host;
    node.port = at.port;
    Direct direct(node, clock);
    auto told = doctor::ask_cluster(direct, "", what.timeout, clock);
    if (told.info) {
      facts.cluster = std::move(told);
      return;
    }
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

Facts collect_facts(Transport& transport, Transport& anonymous, const Endpoint& endpoint, const Examination& what,
                    const Clock& clock, Rng& rng)
{
  Facts facts;
  facts.server = endpoint.shown();
  facts.host = host_of(endpoint);
  facts.asked_on_its_host = is_on_this_host(endpoint);
  Examiner ask(transport, what, clock);
  ask_the_server(facts, ask, transport, what, clock, rng);
  if (facts.failure) {
    ask_a_node(facts, endpoint, what, clock);
  } else {
    facts.anonymous = try_to_delete(anonymous, what.name, {clock.now() + what.timeout, StopToken::never()});
  }
  if (endpoint.kind == Endpoint::Kind::sentinel) {
    facts.sentinels = doctor::ask_sentinels(endpoint, what.timeout, clock);
  }
  facts.certificates = doctor::ask_certificates(endpoint, facts, what.timeout, clock);
  if (!facts.ticks.empty()) {
    clock.sleep_until(facts.ticks.front().sent + 1s, StopToken::never());
    if (auto tick = ask.tick()) {
      facts.ticks.push_back(*tick);
    }
  }
  return facts;
}

}  // namespace rlock
