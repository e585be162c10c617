// SPDX-License-Identifier: Apache-2.0
// A whole cycle, acquire, hold, renew, release, while one request or all later ones fail in one of the ways of Fault.
#include "fault/client.h"
#include "fault/rival.h"
#include "fault/scenario.h"
#include "support/test.h"

#include <span>

using namespace rlock::test;

namespace {

struct CycleRow {
  LockKind kind = Plain{};
  LockKind rival = Plain{};  // a mode that must never be held at the same time
  int keys = 1;
  bool nested = false;  // in a lock that an outer client holds without faults
  std::size_t servers = 1;
  bool all_fail = false;  // of a quorum; else only the first server
  FaultTimes times = {};
};

class Cycle {
 public:
  Cycle(const CycleRow& row, const Servers& servers, FaultPlan& plan, Signals& signals)
      : m_row(row),
        m_servers(servers),
        m_plan(plan),
        m_signals(signals),
        m_keys(fresh_keys(row.keys)),
        m_rival(servers, m_keys, row.rival, row.times.ttl, m_claims)
  {
  }

  FaultResult run()
  {
    add_relays();
    std::optional<Client> outer;
    if (m_row.nested) {
      ClientOptions without_faults = options("the outer client", direct_urls(m_servers), {});
      without_faults.times.server_timeout = time_to_answer;
      outer.emplace(without_faults, m_claims_of_outer, m_signals);
      const auto result = outer->acquire();
      if (!acquired(result)) {
        m_too_slow = too_slow_for("the outer client", result);
        expect(!m_too_slow.empty(), "the outer client does not get the lock");
        return finish();
      }
    }
    Client client(options("the client", urls(), environment(outer)), m_claims, m_signals);
    run_client(client);
    m_rival.look_at_keys();
    if (outer) {
      outer->hold(m_clock.now());
      const bool outer_keeps = outer->give_up() == nullptr;
      const ReleaseFindings findings = outer->release(time_to_release);
      const bool is_in_time = m_clock.now() < outer->valid_until();
      expect(!is_in_time || (outer_keeps && !findings.front()), "the outer client has lost its lock");
    }
    return finish();
  }

 private:
  void add_relays()
  {
    RelayOptions options{.late = m_row.times.server_timeout / 3,
                         .too_late = m_row.times.server_timeout * 3 / 2,
                         .after_request =
                             [this] {
                               m_rival.look_at_keys();
                               m_rival.try_to_overlap();
                             },
                         .keys = {}};
    for (std::size_t i = 0; i < (m_row.all_fail ? m_servers.size() : 1); ++i) {
      options.keys = [this, i] { return m_rival.keys_on(i); };
      m_relays.push_back(std::make_unique<Relay>(m_servers[i]->socket_path(), m_plan.options_for(options)));
    }
  }

  [[nodiscard]] std::vector<std::string> urls() const
  {
    std::vector<std::string> urls = direct_urls(m_servers);
    for (std::size_t i = 0; i < m_relays.size(); ++i) {
      urls[i] = m_relays[i]->url();
    }
    return urls;
  }

  [[nodiscard]] ClientOptions options(const std::string& name, const std::vector<std::string>& urls,
                                      const std::vector<std::string>& environment) const
  {
    return {.name = name,
            .times = m_row.times,
            .urls = urls,
            .keys = m_keys,
            .kind = m_row.kind,
            .wait = m_row.times.ttl * 2,
            .environment = environment};
  }

  [[nodiscard]] std::vector<std::string> environment(const std::optional<Client>& outer) const
  {
    return outer ? job_environment({}, {.held = outer->held_locks(), .server = {}}) : std::vector<std::string>{};
  }

  static bool acquired(const Result<AcquireAllResult>& result)
  {
    return result && std::holds_alternative<AllAcquired>(*result);
  }

  void expect(bool holds, const std::string& what)
  {
    if (!holds) {
      m_wrong.push_back(what);
    }
  }

  void run_client(Client& client)
  {
    const auto result = client.acquire();
    if (!acquired(result)) {
      m_incomplete = "the lock was not acquired";
      return judge_failure(result);
    }
    const Owner owner = client.held_locks().front().hold.owner;
    const Instant valid_until = client.valid_until();
    const bool is_held = m_rival.sees_holder(owner);
    expect(is_held || m_clock.now() >= valid_until, "the client was granted a lock that it does not hold");

    // Two renewals.
    client.hold(m_clock.now() + m_row.times.ttl * 3 / 4);
    const LeaseEvent* const event = client.give_up();
    const bool is_lost = event != nullptr && std::holds_alternative<Lost>(*event);
    expect(!is_lost || !m_rival.sees_holder(owner), "a lock counts as lost and is held");
    if (event != nullptr) {
      m_incomplete = "the lock was not kept: " + std::visit([](const auto& why) { return text_of(why); }, *event);
    }
    release(client, owner, event == nullptr);
  }

  static std::string text_of(const ReleaseRequested& event) { return event.by; }
  static std::string text_of(const Lost& event) { return rlock::text_of(event.found); }
  static std::string text_of(const Unconfirmed& event) { return event.why; }

  void release(Client& client, const Owner& owner, bool kept)
  {
    const ReleaseFindings findings = client.release(m_plan.for_good() ? m_row.times.server_timeout : time_to_release);
    const bool was_no = std::ranges::any_of(findings, [](const auto& finding) { return finding.has_value(); });
    const bool in_time = kept && m_clock.now() < client.valid_until();
    expect(!was_no || !in_time, "the answer to the release of a held lock was no");
    // The release of a lock that is lost is tried once, for a short time.
    const bool may_be_held = !kept || m_plan.for_good() || m_plan.how() == Fault::request_late || m_row.nested;
    expect(may_be_held || !m_rival.sees_holder(owner), "the lock is held after its release");
    m_incomplete += was_no ? "the release was refused" : "";
  }

  // "Unknown", and not "no".
  void judge_failure(const Result<AcquireAllResult>& result)
  {
    if (!result) {
      expect(is_passing(result.error().code), "the failure is: " + result.error().text);
    } else if (const auto* retry = std::get_if<RetryNeeded>(&*result)) {
      expect(!retry->why.empty() && m_row.keys > 1, "a retry without a reason");
    } else if (const auto* busy = std::get_if<LockBusy>(&*result)) {
      expect(m_plan.how() == Fault::request_late, "the lock counts as busy: " + busy->display_name);
    } else {
      expect(false, "the lock was neither acquired nor busy");
    }
  }

  FaultResult finish()
  {
    const auto add = [this](const std::vector<std::string>& more) {
      m_wrong.insert(m_wrong.end(), more.begin(), more.end());
    };
    for (const auto& relay : m_relays) {
      add(relay->differences());
      m_too_slow += relay->too_slow();
    }
    m_relays.clear();  // delivers what is late
    m_rival.look_at_keys();
    expect(m_rival.gets_all(), "the lock does not become free");
    m_rival.look_at_keys();
    add(m_rival.bad_keys());
    add(m_claims.overlaps());
    return {.injected = m_plan.injected(), .incomplete = m_incomplete, .wrong = m_wrong, .too_slow = m_too_slow};
  }

  const CycleRow& m_row;
  const Servers& m_servers;
  FaultPlan& m_plan;
  Signals& m_signals;
  const BootClock m_clock;
  const std::vector<std::string> m_keys;
  Claims m_claims;
  Claims m_claims_of_outer;  // an outer client holds the lock together with the client
  Rival m_rival;
  std::vector<std::unique_ptr<Relay>> m_relays;
  std::string m_incomplete;
  std::string m_too_slow;
  std::vector<std::string> m_wrong;
};

void check_cycle(const CycleRow& row, std::span<const FaultName> faults, int least_runs)
{
  skip_where_forked_threads_hang();
  SignalsOfRun run;
  const Servers servers = start_servers(row.servers);
  const auto series = series_of(faults, [&](FaultPlan& plan) { return Cycle(row, servers, plan, run.signals).run(); });
  expect_nothing_wrong(run_all(series), least_runs);
}

}  // namespace

TEST_CASE("fault: the Nth request of a cycle of a plain lock") { check_cycle({}, all_faults, 60); }

TEST_CASE("fault: the Nth request of a cycle of a reader")
{
  check_cycle({.kind = Reader{}, .rival = Writer{}}, faults_of_scripts, 24);
}

TEST_CASE("fault: the Nth request of a cycle of a writer")
{
  check_cycle({.kind = Writer{}, .rival = Writer{}}, faults_of_scripts, 24);
}

TEST_CASE("fault: the Nth request of a cycle of a permit")
{
  check_cycle({.kind = Permits{1}, .rival = Permits{1}}, faults_of_scripts, 24);
}

TEST_CASE("fault: the Nth request of a cycle of a string lock")
{
  check_cycle({.kind = StringLock{}, .rival = StringLock{}}, faults_of_scripts, 24);
}

TEST_CASE("fault: the Nth request of a cycle of a nested lock")
{
  check_cycle({.nested = true}, faults_of_scripts, 24);
}

TEST_CASE("fault: the Nth request of a cycle of three locks") { check_cycle({.keys = 3}, faults_of_scripts, 48); }

TEST_CASE("fault: the Nth request of a cycle on a quorum, at one server")
{
  check_cycle({.servers = 3, .times = times_of_quorum}, faults_of_scripts, 24);
}

TEST_CASE("fault: the Nth request of a cycle on a quorum, at any server")
{
  check_cycle({.servers = 3, .all_fail = true, .times = times_of_quorum}, faults_of_scripts, 100);
}
