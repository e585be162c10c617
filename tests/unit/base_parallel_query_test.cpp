// SPDX-License-Identifier: Apache-2.0
#include "base/parallel_query.h"
#include "support/limits.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

const BootClock boot_clock;
const std::vector<int> targets{0, 1, 2};

// Replies with the target's number after that many times `pause`, or with -1 when it is stopped before.
struct Echo {
  Millis pause;
  int operator()(int target, const CallLimits& limit) const
  {
    const Wake wake = boot_clock.sleep_until(std::min(boot_clock.now() + target * pause, limit.deadline), limit.stop);
    return wake == Wake::stopped ? -1 : target;
  }
};

}  // namespace

TEST_CASE("parallel query: the replies stand in the order of the targets")
{
  const std::vector<int> late_first{2, 0, 1};
  CHECK(parallel_query(late_first, boot_clock, within(10s), Echo{20ms}) == late_first);
}

TEST_CASE("parallel query: a target is asked while the others are silent")
{
  const Instant start = boot_clock.now();
  parallel_query(std::vector<int>{1, 1, 1}, boot_clock, within(300ms), Echo{10s});
  CHECK(boot_clock.now() - start < 900ms);
}

TEST_CASE("parallel query: open questions are stopped when the caller has enough")
{
  const auto first = [&](PendingReplies<int>& pending) {
    pending.wait(boot_clock, within(10s), [](const Replies<int>& replies) { return replies[0].has_value(); });
  };
  CHECK(parallel_query(targets, boot_clock, within(10s), Echo{10s}, first) == std::vector<int>{0, -1, -1});
}

TEST_CASE("parallel query: the caller's stop ends the wait")
{
  StopSource stop;
  stop.request();
  const CallLimits limit{boot_clock.now() + 10s, stop.token()};
  const auto all = [&](PendingReplies<int>& pending) { pending.wait(boot_clock, limit, all_replied<int>); };
  CHECK(parallel_query(std::vector<int>{1, 2}, boot_clock, limit, Echo{10s}, all) == std::vector<int>{-1, -1});
}

TEST_CASE("parallel query: a question that reaches its deadline is not stopped, and says why it has no answer")
{
  CHECK(parallel_query(targets, boot_clock, within(50ms), Echo{10s}) == targets);
}

TEST_CASE("pending replies: a reply that comes after the others were taken is dropped")
{
  PendingReplies<int> pending(2);
  pending.put(1, 7);
  const Replies<int> taken = pending.take();
  pending.put(0, 8);
  CHECK_FALSE(taken[0].has_value());
  CHECK(taken[1] == 7);
}
