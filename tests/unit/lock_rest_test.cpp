// SPDX-License-Identifier: Apache-2.0
// When a waiter looks again that gets no message.
#include "lock/lock_candidates.h"
#include "support/test.h"

using namespace rlock::test;

TEST_CASE("rest_after: the first twelve follow the ttl one after the other, all others look every ten seconds")
{
  struct Row {
    const char* why;
    std::optional<Millis> ttl;
    std::uint64_t place;
    Millis least;
    Millis most;
  };
  const Row rows[] = {
      {"the first, when the lock has expired", 2000ms, 0, 2001ms, 2003ms},
      {"the second gives it time to", 2000ms, 1, 2301ms, 2303ms},
      {"the fourth as well", 2000ms, 3, 2901ms, 2903ms},
      {"the fifth may be the first that listens", 2000ms, 4, 3201ms, 3203ms},
      {"the next ones are close together", 2000ms, 11, 3341ms, 3343ms},
      {"a waiter further back does not count on the ttl", 2000ms, 12, 10s, 10s},
      {"a long lease may end before its time", 30s, 0, 10s, 10s},
      {"a step back makes no rest longer", 9900ms, 3, 10s, 10s},
      {"no ttl", std::nullopt, 0, 10s, 10s},
      {"far back in a long line nobody is missed for a while", 2000ms, 100, 10s, 12s},
      {"expired already", 0ms, 0, 1ms, 3ms},
  };
  SystemRng rng;
  for (const Row& row : rows) {
    CAPTURE(row.why);
    for (int i = 0; i < 20; ++i) {
      const Millis rest = rest_after({.ttl = row.ttl, .holder = {}, .waiters_ahead = row.place}, rng);
      CHECK(rest >= row.least);
      CHECK(rest <= row.most);
    }
  }
}

TEST_CASE("rest_after: behind a holder that probably does not renew any more every waiter looks when the lock ends")
{
  struct Row {
    const char* why;
    Millis ttl;
    Millis lease;
    bool automatic;
    std::uint64_t place;
    Millis least;
    Millis most;
  };
  const Row rows[] = {
      {"it should have renewed", 500ms, 3s, true, 12, 1861ms, 1863ms},
      {"the same with the usual lease", 8s, 30s, true, 12, 9361ms, 9363ms},
      {"some place in line is the last that looks", 500ms, 3s, true, 35, 2321ms, 2323ms},
      {"the next place looks as early as the fifth", 500ms, 3s, true, 36, 1701ms, 1703ms},
      {"it may still renew", 1600ms, 3s, true, 12, 10s, 10s},
      {"the same with the usual lease", 16s, 30s, true, 12, 10s, 10s},
      {"no client renews a fixed lease, or a lock that --min-hold keeps", 2004ms, 3s, false, 12, 3365ms, 3367ms},
      {"it lasts longer than a waiter rests", 60s, 3s, false, 12, 10s, 10s},
      {"very far behind", 500ms, 3s, false, 100, 10s, 12s},
  };
  SystemRng rng;
  for (const Row& row : rows) {
    CAPTURE(row.why);
    HolderInfo info;
    info.lease = row.lease;
    info.automatic = row.automatic;
    const Busy busy{
        .ttl = row.ttl, .holder = Holder{.owner = Owner::of("o"), .info = info}, .waiters_ahead = row.place};
    const Millis rest = rest_after(busy, rng);
    CHECK(rest >= row.least);
    CHECK(rest <= row.most);
  }
}

TEST_CASE("lock candidate: a waiter that is to watch asks then at the latest")
{
  SystemRng rng;
  CHECK(rest_after({.ttl = 30s, .holder = {}, .waiters_ahead = 9, .watch_in = 2s}, rng) == 2s);
  CHECK(rest_after({.ttl = 500ms, .holder = {}, .waiters_ahead = 0, .watch_in = 2s}, rng) < 1s);
  CHECK(rest_after({.ttl = 500ms, .holder = {}, .waiters_ahead = 0, .again_in = 5s, .watch_in = 2s}, rng) == 5s);
}

TEST_CASE("lock candidate: an unconfirmed hand-over is looked at when its time is over, not when the next one is told")
{
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = {}};
  const Instant now{1h};
  LockCandidate candidate{.spec = spec, .which = 0};
  candidate.ask_at = now + 10s;
  candidate.notified({.look_in = {}, .next = false, .confirm_within = 2s}, now);
  CHECK((candidate.due_at() == now + 2001ms));
  candidate.notified({.look_in = {}, .next = true}, now);
  CHECK((candidate.due_at() == now + 10s));
  candidate.notified({.look_in = {}, .next = true, .confirm_within = 5s},
                     now);  // when the lock ends unless it is renewed
  CHECK((candidate.due_at() == now + 5001ms));

  candidate.notified({.look_in = {}, .next = false, .confirm_within = 2s}, now);
  SystemRng rng;
  candidate.refused({.ttl = 30s, .holder = {}, .waiters_ahead = 0}, {.queues = true, .ticket = 0}, now + 2s, rng);
  CHECK((candidate.due_at() == now + 12s));
}

TEST_CASE("lock candidate: a waiter whose claim was revoked keeps its ticket")
{
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = {}};
  LockCandidate candidate{.spec = spec, .which = 0};
  SystemRng rng;
  for (const std::uint64_t answered : {7U, 0U, 9U}) {
    candidate.refused({.ttl = 30s, .holder = {}, .ticket = answered}, {.queues = true, .ticket = candidate.ticket},
                      Instant{1h}, rng);
    CHECK(candidate.ticket == (answered == 0 ? 7 : answered));
  }
}

TEST_CASE("lock candidate: far back in a slow line a waiter need not listen until it asks again")
{
  struct Row {
    const char* why;
    std::uint64_t first_place;
    std::uint64_t place;
    Millis waited;
    bool is_far;
  };
  const Row rows[] = {
      {"one of the first eight", 7, 7, 60s, false},
      {"has only just come", 100, 100, 0s, false},
      {"does not know the speed of the line yet", 100, 100, 4s, false},
      {"the line does not move", 8, 8, 10s, true},
      {"one place in ten seconds, more than twenty seconds to go", 11, 10, 10s, true},
      {"one place in ten seconds, less than twenty seconds to go", 10, 9, 10s, false},
      {"a long line that moves fast", 300, 150, 10s, false},
      {"a long line that moves slowly", 300, 280, 10s, true},
      {"others came back to their places before it", 20, 25, 10s, true},
  };
  SystemRng rng;
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const LockSpec spec{.name = *LockName::parse("k"), .kind = {}, .ttl = 30s, .who = {}, .once = {}};
    LockCandidate candidate{.spec = spec, .which = 0};
    const Instant start = BootClock().now();
    candidate.refused({.ttl = 30s, .holder = {}, .waiters_ahead = row.first_place}, {.queues = true}, start, rng);
    CHECK_FALSE(candidate.is_far_back());
    candidate.refused({.ttl = 30s, .holder = {}, .waiters_ahead = row.place}, {.queues = true}, start + row.waited,
                      rng);
    CHECK(candidate.is_far_back() == row.is_far);
  }
}
