// SPDX-License-Identifier: Apache-2.0
// A newer run replaces a waiter (--latest), and a request of either of them fails.
#include "fault/faulty_clients.h"

#include <doctest/doctest.h>

#include <atomic>
#include <span>
#include <thread>
#include <variant>

using namespace rlock;
using namespace rlock::test;

namespace {

constexpr FaultTimes times{.ttl = Millis{1200} * slowness, .server_timeout = Millis{400} * slowness};
constexpr Millis longest_hold{3000};  // longer than a request that fails, and the pause before it is repeated
constexpr Millis longest_wait{7000};  // longer than that, a ttl and the time to confirm a hand-over
constexpr Millis hold_time{100};      // of the waiters

enum class Faulty { replaced, newest };

// What became of a waiter.
struct WaitEnd {
  bool had_lock = false;
  bool was_replaced = false;
  std::string failure = {};
};

class Replacement {
 public:
  Replacement(Faulty faulty, const Servers& servers, FaultPlan& plan, Signals& signals)
      : m_faulty(faulty),
        m_plan(plan),
        m_clients(servers, Plain{}, times, plan, signals),
        m_holder(m_clients.add({.name = "the holder", .wait = longest_wait}, false)),
        m_replaced(m_clients.add({.name = "the replaced waiter", .wait = longest_wait, .latest = true},
                                 faulty == Faulty::replaced)),
        m_newest(m_clients.add({.name = "the newest waiter", .wait = longest_wait, .latest = true},
                               faulty == Faulty::newest))
  {
  }

  FaultResult run()
  {
    const auto held = m_holder.acquire();
    if (!held || !std::holds_alternative<AllAcquired>(*held)) {
      const std::string too_slow = too_slow_for("the holder", held);
      m_clients.note_too_slow(too_slow);
      m_clients.expect(!too_slow.empty(), "the holder did not get the lock");
      return m_clients.finish("");
    }
    WaitEnd replaced;
    WaitEnd newest;
    std::atomic<bool> is_over = false;
    std::thread earlier([&] {
      replaced = wait(m_replaced);
      is_over = true;
    });
    hold_until([&] { return is_over || m_clients.rival().sees_waiter("the replaced waiter"); });
    std::thread later([&] { newest = wait(m_newest); });
    const bool came_in_time = hold_until([&] { return m_clients.rival().sees_waiter("the newest waiter"); });
    const bool kept = m_holder.give_up() == nullptr;
    m_clients.release(m_holder, kept);
    earlier.join();
    later.join();
    judge(replaced, newest, came_in_time);
    return m_clients.finish(
        replaced.was_replaced && newest.had_lock ? "" : "replaced: " + shown(replaced) + "; newest: " + shown(newest));
  }

 private:
  template <typename Condition>
  bool hold_until(Condition condition)
  {
    const Instant latest = m_clock.now() + longest_hold;
    while (!condition()) {
      if (m_clock.now() >= latest || !m_holder.hold(m_clock.now() + Millis{20})) {
        return false;
      }
    }
    return true;
  }

  WaitEnd wait(Client& waiter)
  {
    const auto result = waiter.wait_in_line();
    if (!result) {
      m_clients.expect(is_passing(result.error().code), "the failure is: " + result.error().text);
      return {.failure = result.error().text};
    }
    if (const auto* busy = std::get_if<TimedOut>(&*result)) {
      return {.was_replaced = busy->last.replaced.has_value()};
    }
    waiter.hold(m_clock.now() + hold_time);
    const bool kept = waiter.give_up() == nullptr;
    m_clients.release(waiter, kept);
    return {.had_lock = true};
  }

  void judge(const WaitEnd& replaced, const WaitEnd& newest, bool came_in_time)
  {
    m_clients.expect(!came_in_time || !replaced.had_lock, "a waiter that was replaced got the lock");
    m_clients.expect(!newest.was_replaced, "the newest waiter was replaced");
    const bool newest_may_fail = m_faulty == Faulty::newest && (m_plan.for_good() || !newest.failure.empty());
    m_clients.expect(newest.had_lock || newest_may_fail, "the newest waiter did not get the lock: " + shown(newest));
    const bool other_may_stay = m_faulty == Faulty::replaced ? m_plan.for_good() || !replaced.failure.empty()
                                                             : replaced.had_lock && !came_in_time;
    m_clients.expect(replaced.was_replaced || other_may_stay, "the other waiter was not replaced: " + shown(replaced));
  }

  static std::string shown(const WaitEnd& end)
  {
    return end.had_lock ? "had the lock" : end.was_replaced ? "replaced" : end.failure.empty() ? "busy" : end.failure;
  }

  const Faulty m_faulty;
  FaultPlan& m_plan;
  const BootClock m_clock;
  FaultyClients m_clients;
  Client& m_holder;
  Client& m_replaced;
  Client& m_newest;
};

void check_replacement(Faulty faulty, std::span<const FaultName> faults, int least_runs)
{
  skip_where_forked_threads_hang();
  SignalsOfRun run;
  const Servers servers = start_servers(1);
  const auto series =
      series_of(faults, [&](FaultPlan& plan) { return Replacement(faulty, servers, plan, run.signals).run(); });
  expect_nothing_wrong(run_all(series), least_runs);
}

}  // namespace

TEST_CASE("fault: the Nth request of a waiter with --latest that replaces another")
{
  check_replacement(Faulty::newest, faults_of_scripts, 30);
}

TEST_CASE("fault: the Nth request of a waiter with --latest that a newer one replaces")
{
  check_replacement(Faulty::replaced, faults_of_scripts, 24);
}
