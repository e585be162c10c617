// SPDX-License-Identifier: Apache-2.0
// A grant that comes so late that half of its lease or less is left begins no job.
#include "lock/validity.h"

#include "lock/reentry.h"
#include "support/fake_store.h"
#include "support/stepped_clock.h"
#include "support/test.h"

#include <memory>

using namespace rlock::test;

namespace {

using Words = std::vector<std::string>;

constexpr Millis half_and_more{15'000};  // of the lease passes with each reading of the clock

const LockSpec spec{.name = *LockName::parse("k"), .mode = Plain{}, .ttl = 30s, .who = {}, .once = {}};
const Owner alice = Owner::of("alice:1");

class NoObserver final : public WaitObserver {
 public:
  void refused(const Busy&) override {}
  [[nodiscard]] Instant due() const override { return far_future; }
  void tick() override {}
  void next_in_line() override {}
};

// A lock that alice asks for, on a clock that moves while she waits for an answer.
struct Asked {
  explicit Asked(Millis per_reading) : clock(per_reading), store(store_on(server, clock)) {}

  Result<WaitOutcome> acquire()
  {
    SystemRng rng;
    NoObserver observer;
    const WaitPolicy once{.until = Instant{}, .waits = false, .server_timeout = 5min};
    return wait_and_acquire(*store, spec, alice, once, clock, rng, StopToken::never(), observer);
  }

  std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>();
  SteppedClock clock;
  std::unique_ptr<LockStore> store;
};

}  // namespace

TEST_CASE("half-lease rule: more than half of the lease must be left, after the allowance for clocks")
{
  constexpr Instant sent_at{1h};
  CHECK(leaves_enough(sent_at, 30s, sent_at + 14'697ms));
  CHECK_FALSE(leaves_enough(sent_at, 30s, sent_at + 14'698ms));
}

TEST_CASE("half-lease rule: a grant that is always too late is asked for again, given back and not used")
{
  Asked quick(1ms);
  const auto taken = quick.acquire();
  REQUIRE(taken);
  CHECK(std::holds_alternative<Taken>(*taken));

  Asked slow(half_and_more);
  const auto refused = slow.acquire();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unfit);
  CHECK(slow.server->asked() == Words{"acquire alice:1", "acquire alice:1", "acquire alice:1", "release alice:1"});
  CHECK_FALSE(slow.server->holder());
}

TEST_CASE("half-lease rule: a nested hold that is always granted too late is given back and not used")
{
  Asked slow(half_and_more);
  REQUIRE(slow.store->acquire(spec, alice, {}, {.deadline = far_future, .stop = StopToken::never()}));
  SystemRng rng;
  const Hold nested = Hold::nested_in(alice, rng, 1);
  const auto refused = reenter_lock(*slow.store, spec, nested, 5min, slow.clock, StopToken::never());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unfit);
  CHECK(slow.server->asked().back() == "release alice:1");
}
