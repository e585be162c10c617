// SPDX-License-Identifier: Apache-2.0
// Clients of one lock at the same time. Each has relays of its own to the servers, and the requests of one of them fail by
// the plan. After each request the rival looks at the keys and tries to get the lock.
#pragma once

#include "fault/client.h"
#include "fault/fault_plan.h"
#include "fault/rival.h"
#include "fault/scenario.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rlock::test {

class FaultyClients {
 public:
  FaultyClients(const Servers& servers, LockKind kind, const FaultTimes& times, FaultPlan& plan, Signals& signals)
      : m_servers(servers),
        m_mode(kind),
        m_times(times),
        m_plan(plan),
        m_signals(signals),
        m_keys(fresh_keys(1)),
        m_rival(servers, m_keys, kind, times.ttl, m_claims)
  {
  }

  // `options`: the name, and what differs from the other clients. `fails`: its requests fail by the plan.
  Client& add(ClientOptions options, bool fails)
  {
    options.times = {.ttl = m_times.ttl, .server_timeout = fails ? m_times.server_timeout : time_to_answer};
    options.keys = m_keys;
    options.kind = m_mode;
    for (std::size_t i = 0; i < m_servers.size(); ++i) {
      m_relays.push_back(
          std::make_unique<Relay>(m_servers[i]->socket_path(), m_plan.options_for(relay_options(i), fails)));
      options.urls.push_back(m_relays.back()->url());
    }
    return m_clients.emplace_back(options, m_claims, m_signals);
  }

  // Thread-safe.
  void expect(bool holds, const std::string& what)
  {
    if (!holds) {
      const std::lock_guard guard(m_mutex);
      m_wrong.push_back(what);
    }
  }

  // Thread-safe. What the machine did not do in time; empty: nothing. The run is repeated then.
  void note_too_slow(const std::string& what)
  {
    const std::lock_guard guard(m_mutex);
    m_too_slow += what;
  }

  // True: the server had it as held. `kept`: it must be held while its lease is not over.
  bool release(Client& client, bool kept)
  {
    const ReleaseFindings findings = client.release(m_plan.for_good() ? m_times.server_timeout : time_to_release);
    const bool in_time = kept && m_clock.now() < client.valid_until();
    expect(!in_time || !findings.front(), "the answer to the release of a held lock was no");
    return !findings.front();
  }

  // All clients have ended.
  FaultResult finish(const std::string& incomplete)
  {
    for (const auto& relay : m_relays) {
      add_wrong(relay->differences());
      m_too_slow += relay->too_slow();
    }
    m_relays.clear();  // delivers what is late
    expect(m_rival.gets_all(), "the lock does not become free");
    m_rival.look_at_keys();
    add_wrong(m_rival.bad_keys());
    add_wrong(m_claims.overlaps());
    return {.injected = m_plan.injected(), .incomplete = incomplete, .wrong = m_wrong, .too_slow = m_too_slow};
  }

  [[nodiscard]] Rival& rival() { return m_rival; }

 private:
  RelayOptions relay_options(std::size_t server)
  {
    return {.late = m_times.server_timeout / 3,
            .too_late = m_times.server_timeout * 3 / 2,
            .after_request =
                [this] {
                  m_rival.look_at_keys();
                  m_rival.try_to_overlap();
                },
            .keys = [this, server] { return m_rival.keys_on(server); }};
  }
  void add_wrong(const std::vector<std::string>& more) { m_wrong.insert(m_wrong.end(), more.begin(), more.end()); }

  const Servers& m_servers;
  const LockKind m_mode;
  const FaultTimes m_times;
  FaultPlan& m_plan;
  Signals& m_signals;
  const BootClock m_clock;
  const std::vector<std::string> m_keys;
  Claims m_claims;
  Rival m_rival;
  std::vector<std::unique_ptr<Relay>> m_relays;
  std::deque<Client> m_clients;
  std::mutex m_mutex;
  std::vector<std::string> m_wrong;  // guarded by m_mutex while the clients run, as the next one
  std::string m_too_slow;
};

}  // namespace rlock::test
