// SPDX-License-Identifier: Apache-2.0
#include "lease/renewal.h"

#include "lock/lease_budget.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

constexpr Instant t0{};
constexpr RenewalPolicy policy{.every = 10s, .retry_every = 1s, .try_for = 2s, .longest_try = 4s, .kill_after = 5s};

std::string ms_since_start(Instant when)
{
  return std::to_string(std::chrono::duration_cast<Millis>(when - t0).count());
}

std::string shown(const Step& step)
{
  if (const auto* sleep = std::get_if<Sleep>(&step)) {
    return "sleep " + ms_since_start(sleep->until);
  }
  if (const auto* renew = std::get_if<Renew>(&step)) {
    return "renew by " + ms_since_start(renew->deadline);
  }
  return "lost";
}

// Plays a watchdog against a server that answers at once but is away in [from, until).
bool survives_outage(Millis ttl, Millis from, Millis until)
{
  const RenewalPolicy plan = renewal_policy(ttl, ttl / 6);
  RenewalState lease{.lease = LeaseBudget({.from = t0, .length = ttl}), .last_kept = t0, .last_try = t0};
  Instant now = t0;
  while (now < t0 + 3 * ttl) {
    const Step step = next_step(lease, plan, now);
    if (std::holds_alternative<GiveUp>(step)) {
      return false;
    }
    if (const auto* sleep = std::get_if<Sleep>(&step)) {
      now = sleep->until;
      continue;
    }
    lease.last_try = now;
    const bool away = now >= t0 + from && now < t0 + until;
    if (away) {  // waits until its own deadline, the worst outage
      const Instant gave_up = std::get<Renew>(step).deadline;
      const bool back_in_time = gave_up > t0 + until;
      now = back_in_time ? t0 + until : gave_up;
      if (!back_in_time) {
        continue;
      }
    }
    lease.last_kept = lease.last_try;
    lease.lease = LeaseBudget({.from = lease.last_kept, .length = ttl});
  }
  return true;
}

// Whether an attempt lasts until a server has answered that always needs that time. An unfinished attempt is lost with its
// connection: the next one sends a new request.
bool waits_for_server(Millis ttl, const RenewalPolicy& plan, Millis answer_time)
{
  RenewalState lease{.lease = LeaseBudget({.from = t0, .length = ttl}), .last_kept = t0, .last_try = t0};
  Instant now = t0;
  Step step = next_step(lease, plan, now);
  for (; !std::holds_alternative<GiveUp>(step); step = next_step(lease, plan, now)) {
    const auto* renew = std::get_if<Renew>(&step);
    if (renew != nullptr && renew->deadline - now > answer_time) {
      return true;
    }
    lease.last_try = renew != nullptr ? now : lease.last_try;
    now = renew != nullptr ? renew->deadline : std::get<Sleep>(step).until;
  }
  return false;
}

}  // namespace

TEST_CASE("renewal: a 30 s lease, step by step")
{
  const RenewalState healthy{.lease = LeaseBudget({.from = t0, .length = 30s}), .last_kept = t0, .last_try = t0};
  const RenewalState failing{.lease = LeaseBudget({.from = t0, .length = 30s}), .last_kept = t0, .last_try = t0 + 12s};

  struct Row {
    const char* why;
    RenewalState lease;
    Millis now;
    const char* expect;
  };
  const Row rows[] = {
      {"just granted", healthy, 0s, "sleep 10000"},
      {"due to the millisecond", healthy, 10s, "renew by 12000"},
      {"retries come sooner", failing, 12500ms, "sleep 13000"},
      {"a server may be slow, not away: longer", failing, 13s, "renew by 16000"},
      {"but so that it can be asked again", failing, 18s, "renew by 22000"},
      {"a late retry still counts", failing, 24697ms, "renew by 24698"},
      {"no time left to kill", failing, 24698ms, "lost"},
      {"woken from suspend", healthy, 1h, "lost"},
      {"the attempt ends where the margin begins", failing, 24s, "renew by 24698"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(shown(next_step(row.lease, policy, t0 + row.now)) == row.expect);
  }
}

TEST_CASE("renewal: a server that always needs a tenth of the ttl to answer is waited for")
{
  for (const Millis ttl : {100ms, 300ms, 1000ms, 3000ms, 30'000ms}) {
    CAPTURE(ttl.count());
    CHECK(waits_for_server(ttl, renewal_policy(ttl, ttl / 6), ttl / 10));
  }
}

// Its renewals begin with the lease, so that one of them can take longer.
TEST_CASE("renewal: to confirm a claim, a server that always needs a quarter of it to answer is waited for")
{
  for (const Millis claim : {300ms, 1000ms, 2000ms}) {
    CAPTURE(claim.count());
    CHECK(waits_for_server(claim, confirmation_policy(claim, claim / 6), claim / 4));
  }
}

TEST_CASE("renewal: a server that is away for 0.45 ttl is survived, whenever it goes")
{
  for (const Millis ttl : {1000ms, 3000ms, 30'000ms}) {
    for (Millis from = 0ms; from < ttl; from += ttl / 200) {
      CAPTURE(ttl.count());
      CAPTURE(from.count());
      CHECK(survives_outage(ttl, from, from + ttl * 45 / 100));
    }
  }
}

TEST_CASE("renewal: a server that is away for half a ttl and more from the worst moment is not")
{
  CHECK_FALSE(survives_outage(3000ms, 999ms, 999ms + 1600ms));
}

TEST_CASE("renewal: a fixed lease is checked every ten seconds or third of its ttl, and so is whatever a reader has")
{
  struct Row {
    const char* why;
    LockKind kind;
    bool renews;
    Millis ttl;
    Millis every;
  };
  const Row rows[] = {
      {"a third", Plain{}, true, 30s, 10s},
      {"a third of a long one", Writer{}, true, 300s, 100s},
      {"a reader's", Reader{}, true, 300s, 10s},
      {"a third is sooner", Reader{}, true, 3s, 1s},
      {"a reader's fixed lease", Reader{}, false, 300s, 10s},
      {"a fixed lease", Plain{}, false, 300s, 10s},
      {"a fixed lease of a writer", Writer{}, false, 300s, 10s},
      {"a fixed lease of a permit", Permits{1}, false, 300s, 10s},
      {"a fixed lease of a string", StringLock{}, false, 300s, 10s},
      {"a short fixed lease", Plain{}, false, 6s, 2s},
  };
  const auto policy_for = [](const LockKind& kind, bool renews, Millis ttl) {
    return renewal_policy(ttl, kind, renews, 1s);
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(policy_for(row.kind, row.renews, row.ttl).every.count() == row.every.count());
  }
}
