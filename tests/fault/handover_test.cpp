// SPDX-License-Identifier: Apache-2.0
// A holder releases its lock while another client waits for it, and a request of either of them fails.
#include "fault/client.h"
#include "fault/faulty_relay.h"
#include "fault/rival.h"
#include "fault/scenario.h"

#include <doctest/doctest.h>

#include <span>
#include <thread>

using namespace rlock;
using namespace rlock::test;

namespace {

constexpr FaultTimes default_times{.ttl = Millis{1200} * slowness, .server_timeout = Millis{400} * slowness};
constexpr Millis longest_wait{4000};  // longer than a ttl, and than the time to confirm a hand-over
constexpr Millis hold_time{100};      // of the waiter

enum class Faulty { holder, waiter };

struct HandoverRow {
  Mode mode = Plain{};
  Faulty faulty = Faulty::holder;
  std::size_t servers = 1;
  FaultTimes times = default_times;
};

class Handover {
 public:
  Handover(const HandoverRow& row, const Servers& servers, FaultPlan& plan, Signals& signals)
      : m_row(row),
        m_plan(plan),
        m_keys(fresh_keys(1)),
        m_rival(servers, m_keys, row.mode, row.times.ttl, m_claims),
        m_holder_relays(relays(servers, row.faulty == Faulty::holder)),
        m_waiter_relays(relays(servers, row.faulty == Faulty::waiter)),
        m_holder(options("the holder", m_holder_relays), m_claims, signals),
        m_waiter(options("the waiter", m_waiter_relays), m_claims, signals)
  {
  }

  RunResult run()
  {
    const auto held = m_holder.acquire();
    const bool holds = held && std::holds_alternative<AllAcquired>(*held);
    expect(holds || m_row.faulty == Faulty::holder, "the holder did not get the lock");
    std::thread waiter([this] { run_waiter(); });
    if (holds) {
      run_holder();
    }
    waiter.join();
    return finish();
  }

 private:
  using Relays = std::vector<std::unique_ptr<FaultyRelay>>;

  Relays relays(const Servers& servers, bool fails)
  {
    Relays all;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const FaultyRelayOptions options{.late = m_row.times.server_timeout / 3,
                                       .too_late = m_row.times.server_timeout * 3 / 2,
                                       .fails = fails,
                                       .after_request =
                                           [this] {
                                             m_rival.look_at_keys();
                                             m_rival.try_to_overlap();
                                           },
                                       .state = [this, i] { return m_rival.state(i); }};
      all.push_back(std::make_unique<FaultyRelay>(servers[i]->socket_path(), m_plan, options));
    }
    return all;
  }

  [[nodiscard]] ClientOptions options(const std::string& name, const Relays& relays) const
  {
    ClientOptions options{
        .name = name, .times = m_row.times, .urls = {}, .keys = m_keys, .mode = m_row.mode, .wait = longest_wait};
    for (const auto& relay : relays) {
      options.urls.push_back(relay->url());
    }
    return options;
  }

  void expect(bool holds, const std::string& what)
  {
    if (!holds) {
      const std::lock_guard guard(m_mutex);
      m_wrong.push_back(what);
    }
  }

  // Releases when the waiter is in line. On a quorum there is no line.
  void run_holder()
  {
    const Instant latest = m_clock.now() + m_row.times.ttl;
    while (m_rival.waiters() == 0 && m_clock.now() < latest && m_holder.hold(m_clock.now() + Millis{20})) {
    }
    const bool kept = m_holder.give_up() == nullptr;
    const ReleaseFindings findings = m_holder.release(m_plan.for_good() ? m_row.times.server_timeout : time_to_release);
    const bool in_time = kept && m_clock.now() < m_holder.valid_until();
    expect(!in_time || !findings.front(), "the answer to the release of a held lock was no");
    if (!kept || findings.front()) {
      m_incomplete = "the holder lost its lock";
    }
  }

  void run_waiter()
  {
    const auto result = m_waiter.wait_in_line();
    if (!result || !std::holds_alternative<Done>(*result)) {
      const bool may_fail = m_row.faulty == Faulty::waiter && (m_plan.for_good() || !result);
      const std::string why = result ? "the lock is busy" : result.error().text;
      expect(may_fail && (result || is_passing(result.error().code)), "the waiter did not get the lock: " + why);
      m_waiter_failure = why;
      return;
    }
    const Instant valid_until = m_waiter.valid_until();
    const bool is_held = m_rival.sees_holder(m_waiter.held_locks().front().hold.owner);
    expect(is_held || m_clock.now() >= valid_until, "the waiter was granted a lock that it does not hold");
    m_waiter.hold(m_clock.now() + hold_time);
    m_waiter.give_up();
    m_waiter.release(m_plan.for_good() ? m_row.times.server_timeout : time_to_release);
  }

  RunResult finish()
  {
    for (const Relays* relays : {&m_holder_relays, &m_waiter_relays}) {
      for (const auto& relay : *relays) {
        const auto differences = relay->differences();
        m_wrong.insert(m_wrong.end(), differences.begin(), differences.end());
      }
    }
    m_holder_relays.clear();  // delivers what is late
    m_waiter_relays.clear();
    expect(m_rival.gets_all(), "the lock does not become free");
    m_rival.look_at_keys();
    for (const auto& more : {m_rival.bad_keys(), m_claims.overlaps()}) {
      m_wrong.insert(m_wrong.end(), more.begin(), more.end());
    }
    return {.injected = m_plan.injected(), .incomplete = m_incomplete + m_waiter_failure, .wrong = m_wrong};
  }

  const HandoverRow& m_row;
  FaultPlan& m_plan;
  const BootClock m_clock;
  const std::vector<std::string> m_keys;
  Claims m_claims;
  Rival m_rival;
  Relays m_holder_relays;
  Relays m_waiter_relays;
  Client m_holder;
  Client m_waiter;
  std::string m_incomplete;      // of the main thread
  std::string m_waiter_failure;  // of the waiter's thread
  std::mutex m_mutex;
  std::vector<std::string> m_wrong;  // guarded by m_mutex while the waiter runs
};

void check_handover(const HandoverRow& row, std::span<const FaultName> faults, int least_runs)
{
  SignalsOfRun run;
  const Servers servers = start_servers(row.servers);
  const auto series =
      series_of(faults, [&](FaultPlan& plan) { return Handover(row, servers, plan, run.signals).run(); });
  expect_nothing_wrong(run_all(series), least_runs);
}

}  // namespace

TEST_CASE("fault: the Nth request of a holder that hands over") { check_handover({}, all_faults, 40); }

TEST_CASE("fault: the Nth request of a waiter") { check_handover({.faulty = Faulty::waiter}, all_faults, 60); }

TEST_CASE("fault: the Nth request of a waiting writer, permit and string lock")
{
  for (const Mode& mode : std::vector<Mode>{Writer{}, Permits{1}, StringLock{}}) {
    CAPTURE(kind_of(mode).with_article);
    check_handover({.mode = mode, .faulty = Faulty::waiter}, faults_of_scripts, 20);
  }
}

TEST_CASE("fault: the Nth request of a waiter for a quorum")
{
  check_handover({.faulty = Faulty::waiter, .servers = 3, .times = times_of_quorum}, faults_of_scripts, 60);
}
