// SPDX-License-Identifier: Apache-2.0
// What a trial lock of the doctor leaves on a server that no longer answers.
#include "doctor/probe.h"

#include "support/bare_store.h"
#include "support/seeded_rng.h"
#include "support/stepped_clock.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

// Answers the first request of a trial, and then no other.
class SilentAfterGrant final : public BareStore {
 public:
  std::optional<Millis> asked_for;

  Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& options,
                          const CallLimits& limit) override
  {
    if (asked_for) {
      return BareStore::acquire(spec, owner, options, limit);
    }
    asked_for = spec.ttl;
    return Attempt{Granted{.fence = 1, .count = 1, .lease = LeaseTerm{.from = limit.deadline, .length = spec.ttl}}};
  }
};

}  // namespace

TEST_CASE("doctor probe: a trial lock stays for seconds on a server that stops answering, whatever the ttl is")
{
  struct Row {
    Millis ttl;
    Millis timeout;
    Millis lease;
  };
  for (const Row& row : {Row{1h, 1s, 5s}, Row{30s, 5s, 10s}, Row{2s, 5s, 2s}}) {
    const SteppedClock clock;
    SeededRng rng(1);
    SilentAfterGrant store;
    const auto probe = probe_lock(store, *LockName::parse("k"), row.ttl, row.timeout, clock, rng);
    CHECK_FALSE(probe);
    REQUIRE(store.asked_for);
    CHECK(*store.asked_for == row.lease);
  }
}
