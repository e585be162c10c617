// SPDX-License-Identifier: Apache-2.0
// WaitPolicy::server_until: how often a server that fails is asked, and when the waiter gives up.
#include "lock/reach_server.h"
#include "support/seeded_rng.h"
#include "support/silent_observer.h"
#include "support/test.h"
#include "support/wait_fixture.h"

using namespace rlock::test;

namespace {

class FailureObserver final : public SilentObserver {
 public:
  explicit FailureObserver(std::function<void(int)> when_failed = nullptr) : m_when_failed(std::move(when_failed)) {}
  void server_failed(const Error&) override
  {
    ++failed;
    if (m_when_failed) {
      m_when_failed(failed);
    }
  }
  void server_answered() override { ++answered; }

  int failed = 0;
  int answered = 0;

 private:
  std::function<void(int)> m_when_failed;
};

// `wait`, `wait_server`: zero: not at all.
WaitPolicy policy_of(Millis wait, Millis wait_server)
{
  const Instant now = BootClock().now();
  return {.until = now + wait,
          .waits = wait > 0ms,
          .server_timeout = 5s,
          .server_until = wait_server > 0ms ? std::optional{now + wait_server} : std::nullopt};
}

std::string outcome_of(WaitFixture& fixture, const WaitPolicy& policy, FailureObserver& observer)
{
  const auto store = store_of(fixture);
  const BootClock clock;
  SeededRng rng(7);
  const auto specs = fixture.specs();
  const auto outcome =
      wait_and_acquire(*store, specs, Owner::of("us:1"), policy, clock, rng, StopToken::never(), observer);
  return !outcome ? "error" : std::holds_alternative<Taken>(*outcome) ? "taken" : "busy";
}

}  // namespace

TEST_CASE("waiting for a server: without it the first failure is the end")
{
  for (const Millis wait : {0ms, 5000ms}) {
    WaitFixture fixture(1);
    fixture.fails_from = 1;
    FailureObserver observer;
    CHECK(outcome_of(fixture, policy_of(wait, 0ms), observer) == "error");
    CHECK(fixture.count("stand") + fixture.count("look") == 1);
    CHECK(observer.failed == 0);
  }
}

TEST_CASE("waiting for a server: it is asked with pauses until the time is over, however short the wait for the lock")
{
  for (const Millis wait : {0ms, 1ms, 60'000ms}) {
    WaitFixture fixture(1);
    fixture.fails_from = 1;
    FailureObserver observer;
    const Instant begin = BootClock().now();
    CHECK(outcome_of(fixture, policy_of(wait, 600ms), observer) == "error");
    CHECK(BootClock().now() - begin >= 600ms);
    const auto asked = fixture.count("stand") + fixture.count("look");
    CHECK(asked >= 2);
    CHECK(asked <= 12);  // pauses of 25 ms at least, which double
    CHECK(observer.failed == asked - 1);
    CHECK(observer.answered == 0);
  }
}

TEST_CASE("waiting for a server: one that answers is asked for the lock, once where the time of the lock is over")
{
  for (const Millis wait : {0ms, 1ms}) {
    for (const bool is_free : {true, false}) {
      WaitFixture fixture(1);
      fixture.locks[0].is_free = is_free;
      fixture.fails_from = 1;
      FailureObserver observer([&](int failed) { fixture.fails_from = failed < 3 ? 1 : 0; });
      CHECK(outcome_of(fixture, policy_of(wait, 60'000ms), observer) == (is_free ? "taken" : "busy"));
      CHECK(observer.failed == 3);
      CHECK(observer.answered == 1);
      CHECK(fixture.show() == (is_free ? "taken: 0; queues:" : "taken:; queues:"));
    }
  }
}

TEST_CASE("waiting for a server: an answer that was lost does not leave two holds")
{
  WaitFixture fixture(1);
  fixture.locks[0].is_free = true;
  fixture.fail_at = 1;
  fixture.takes_effect = true;
  FailureObserver observer;
  CHECK(outcome_of(fixture, policy_of(0ms, 60'000ms), observer) == "taken");
  CHECK(fixture.show() == "taken: 0; queues:");
  CHECK(fixture.count("leave") == 0);
}

TEST_CASE("waiting for a server: a store that cannot be opened is opened again, and only for errors that pass")
{
  for (const ErrorCode code :
       {ErrorCode::unreachable, ErrorCode::server_not_ready, ErrorCode::refused, ErrorCode::config}) {
    FailureObserver observer;
    SeededRng rng(7);
    int attempts = 0;
    const auto opened = reach_server(policy_of(0ms, 60'000ms), BootClock(), rng, StopToken::never(), observer, [&] {
      return ++attempts < 3 ? Result<int>(Error{code, "no"}) : Result<int>(attempts);
    });
    CHECK(static_cast<bool>(opened) == is_passing(code));
    CHECK(attempts == (is_passing(code) ? 3 : 1));
    CHECK(observer.answered == (is_passing(code) ? 1 : 0));
  }
}
