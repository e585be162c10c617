// SPDX-License-Identifier: Apache-2.0
// When the wait loop asks a holder to stop, on a store that the test controls.
#include "support/silent_observer.h"
#include "support/test.h"
#include "support/wait_fixture.h"

#include <variant>

using namespace rlock::test;

namespace {

// Its first step says that the lock may be free.
class CountingStopper final : public HolderStopper {
 public:
  void in_the_way(const Busy&) override
  {
    ++refusals;
    m_due = steps == 0 ? Instant{} : far_future;
  }
  [[nodiscard]] Instant due() const override { return m_due; }
  bool step(StopToken) override
  {
    ++steps;
    m_due = far_future;
    return true;
  }

  int refusals = 0;
  int steps = 0;

 private:
  Instant m_due = far_future;
};

// Frees the lock when the waiter rests, unless the wait is hopeless.
class Observer final : public SilentObserver {
 public:
  explicit Observer(WaitFixture* to_free) : m_to_free(to_free) {}
  [[nodiscard]] Instant due() const override { return m_to_free != nullptr ? Instant{} : far_future; }
  void tick() override { std::exchange(m_to_free, nullptr)->locks[0] = {.is_free = true}; }
  bool is_hopeless(const Busy&) override { return m_to_free == nullptr; }

 private:
  WaitFixture* m_to_free;
};

bool gets_lock(WaitFixture& fixture, HolderStopper& stopper, Observer observer)
{
  const auto store = store_of(fixture);
  const BootClock clock;
  SystemRng rng;
  const auto specs = fixture.specs();
  const WaitPolicy policy{.until = std::nullopt, .waits = true, .server_timeout = 5s, .stopper = &stopper};
  const auto outcome =
      wait_and_acquire(*store, specs, Owner::of("us:1"), policy, clock, rng, StopToken::never(), observer);
  REQUIRE(outcome);
  return std::holds_alternative<Taken>(*outcome);
}

}  // namespace

TEST_CASE("holder stopper: after a holder was asked to stop, the waiter asks for the lock at once")
{
  WaitFixture fixture(1);
  CountingStopper stopper;
  const BootClock clock;
  const Instant begin = clock.now();
  CHECK(gets_lock(fixture, stopper, Observer(&fixture)));
  CHECK(stopper.steps == 1);
  CHECK(clock.now() - begin < 5s);  // without that answer it asks when the ttl is over
}

TEST_CASE("holder stopper: a holder that waits for the end of the waiter itself is not asked to stop")
{
  WaitFixture fixture(1);
  CountingStopper stopper;
  CHECK_FALSE(gets_lock(fixture, stopper, Observer(nullptr)));
  CHECK(fixture.show() == "taken:; queues:");
  CHECK(stopper.refusals == 0);
}
