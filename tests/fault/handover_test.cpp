// SPDX-License-Identifier: Apache-2.0
// A holder releases its lock while another client waits for it, because its job is over or because the waiter asks for it
// (--cancel-in-progress), and a request of either of them fails.
#include "fault/faulty_clients.h"

#include <doctest/doctest.h>

#include <span>
#include <thread>
#include <variant>

using namespace rlock;
using namespace rlock::test;

namespace {

constexpr FaultTimes default_times{.ttl = Millis{1200} * slowness, .server_timeout = Millis{400} * slowness};
// Longer than a ttl, and than the time to confirm a hand-over.
constexpr Millis longest_wait = Millis{4000} * slowness;
// Longer than a request that fails, and the pause before it is repeated.
constexpr Millis longest_cancel = Millis{5000} * slowness;
constexpr Millis hold_time{100};  // of the waiter

enum class Faulty { holder, waiter };

struct HandoverRow {
  LockKind kind = Plain{};
  Faulty faulty = Faulty::holder;
  std::size_t servers = 1;
  FaultTimes times = default_times;
  bool cancels = false;  // the waiter asks the holder to stop
};

class Handover {
 public:
  Handover(const HandoverRow& row, const Servers& servers, FaultPlan& plan, Signals& signals)
      : m_row(row),
        m_plan(plan),
        m_clients(servers, row.kind, row.times, plan, signals),
        m_holder(m_clients.add({.name = "the holder", .wait = longest_wait}, row.faulty == Faulty::holder)),
        m_waiter(m_clients.add({.name = "the waiter",
                                .wait = longest_wait + (row.cancels ? longest_cancel : Millis{0}),
                                .cancel_in_progress = row.cancels},
                               row.faulty == Faulty::waiter))
  {
  }

  FaultResult run()
  {
    const auto held = m_holder.acquire();
    const bool holds = held && std::holds_alternative<AllAcquired>(*held);
    if (!holds && m_row.faulty != Faulty::holder) {
      const std::string too_slow = too_slow_for("the holder", held);
      m_clients.note_too_slow(too_slow);
      m_clients.expect(!too_slow.empty(), "the holder did not get the lock");
      return m_clients.finish("");
    }
    std::thread waiter([this] { run_waiter(); });
    if (holds) {
      run_holder();
    }
    waiter.join();
    const bool must_ask = m_row.cancels && holds && !m_plan.for_good() && m_incomplete.empty();
    m_clients.expect(!must_ask || m_was_asked || !m_waiter_failure.empty(), "the holder was not asked to stop");
    return m_clients.finish(m_incomplete + m_waiter_failure);
  }

 private:
  // Releases when the waiter is in line, or has asked for it. On a quorum there is no line.
  void run_holder()
  {
    const Instant latest = m_clock.now() + (m_row.cancels ? longest_cancel : m_row.times.ttl);
    while ((m_row.cancels || m_clients.rival().waiters() == 0) && m_clock.now() < latest &&
           m_holder.hold(m_clock.now() + Millis{20})) {
    }
    const LeaseEvent* const event = m_holder.give_up();
    m_was_asked = event != nullptr && std::holds_alternative<ReleaseRequested>(*event);
    const bool kept = event == nullptr || m_was_asked;
    if (!m_clients.release(m_holder, kept) || !kept) {
      m_incomplete = "the holder lost its lock";
    }
  }

  void run_waiter()
  {
    const auto result = m_waiter.wait_in_line();
    if (!result || !std::holds_alternative<Done>(*result)) {
      const std::string too_slow = m_row.faulty == Faulty::holder ? too_slow_for("the waiter", result) : "";
      if (!too_slow.empty()) {
        return m_clients.note_too_slow(too_slow);
      }
      const bool may_fail = m_row.faulty == Faulty::waiter && (m_plan.for_good() || !result);
      const std::string why = result ? "the lock is busy" : result.error().text;
      m_clients.expect(may_fail && (result || is_passing(result.error().code)),
                       "the waiter did not get the lock: " + why);
      m_waiter_failure = why;
      return;
    }
    const Instant valid_until = m_waiter.valid_until();
    const bool is_held = m_clients.rival().sees_holder(m_waiter.held_locks().front().hold.owner);
    m_clients.expect(is_held || m_clock.now() >= valid_until, "the waiter was granted a lock that it does not hold");
    m_waiter.hold(m_clock.now() + hold_time);
    m_waiter.give_up();
    m_clients.release(m_waiter, false);
  }

  const HandoverRow& m_row;
  FaultPlan& m_plan;
  const BootClock m_clock;
  FaultyClients m_clients;
  Client& m_holder;
  Client& m_waiter;
  std::string m_incomplete;  // of the main thread
  bool m_was_asked = false;
  std::string m_waiter_failure;  // of the waiter's thread
};

void check_handover(const HandoverRow& row, std::span<const FaultName> faults, int least_runs)
{
  skip_where_forked_threads_hang();
  SignalsOfRun run;
  const Servers servers = start_servers(row.servers);
  const auto series =
      series_of(faults, [&](FaultPlan& plan) { return Handover(row, servers, plan, run.signals).run(); });
  expect_nothing_wrong(run_all(series), least_runs);
}

}  // namespace

TEST_CASE("fault: the Nth request of a holder that hands over") { check_handover({}, all_faults, 40); }

TEST_CASE("fault: the Nth request of a waiter")
{
  check_handover({.faulty = Faulty::waiter}, std::span(all_faults).first(broken_answers), 30);
}

TEST_CASE("fault: the Nth request of a waiter, late or sent twice")
{
  check_handover({.faulty = Faulty::waiter}, std::span(all_faults).subspan(broken_answers), 30);
}

TEST_CASE("fault: the Nth request of a waiting writer, permit and string lock")
{
  for (const LockKind& kind : std::vector<LockKind>{Writer{}, Permits{1}, StringLock{}}) {
    CAPTURE(kind_of(kind).with_article);
    check_handover({.kind = kind, .faulty = Faulty::waiter}, faults_of_scripts, 20);
  }
}

TEST_CASE("fault: the Nth request of a waiter for a quorum")
{
  check_handover({.faulty = Faulty::waiter, .servers = 3, .times = times_of_quorum}, faults_of_scripts, 60);
}

TEST_CASE("fault: the Nth request of a waiter with --cancel-in-progress")
{
  check_handover({.faulty = Faulty::waiter, .cancels = true}, faults_of_scripts, 50);
}

TEST_CASE("fault: the Nth request of a holder that is asked to stop")
{
  check_handover({.faulty = Faulty::holder, .cancels = true}, faults_of_scripts, 40);
}
