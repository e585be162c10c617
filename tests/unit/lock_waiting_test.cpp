// SPDX-License-Identifier: Apache-2.0
// One waiter for any of several locks, on a store that the test controls.
#include "support/silent_observer.h"
#include "support/test.h"
#include "support/wait_fixture.h"

#include <set>

using namespace rlock::test;

namespace {

using Words = std::vector<std::string>;

// Each rest calls the observer once, which then triggers the event.
class TickingObserver final : public SilentObserver {
 public:
  explicit TickingObserver(std::function<void()> event) : m_event(std::move(event)) {}
  void refused(const Busy& busy) override { m_places.push_back(busy.waiters_ahead); }
  [[nodiscard]] Instant due() const override { return m_event ? Instant{} : far_future; }
  void tick() override { std::exchange(m_event, nullptr)(); }
  [[nodiscard]] const std::vector<std::uint64_t>& places() const { return m_places; }

 private:
  std::function<void()> m_event;
  std::vector<std::uint64_t> m_places;
};

// The test chooses which lock is asked first.
class FixedRng final : public Rng {
 public:
  explicit FixedRng(std::uint64_t value) : m_value(value) {}
  std::uint64_t next() override { return m_value; }

 private:
  std::uint64_t m_value;
};

constexpr WaitPolicy for_ever{.until = std::nullopt, .waits = true, .server_timeout = 5s};
constexpr WaitPolicy not_at_all{.until = Instant{}, .waits = false, .server_timeout = 5s};

// "took 2", "busy", "interrupted" or the error, and the server's state at the end.
std::string outcome_of(WaitFixture& fixture, const WaitPolicy& policy, WaitObserver& observer, std::uint64_t first = 0,
                       StopToken stop = StopToken::never())
{
  const auto store = store_of(fixture);
  const BootClock clock;
  FixedRng rng(first);
  const auto specs = fixture.specs();
  const auto outcome = wait_and_acquire(*store, specs, Owner::of("us:1"), policy, clock, rng, stop, observer);
  std::string text = !outcome                                        ? outcome.error().text
                     : std::holds_alternative<TimedOut>(*outcome)    ? "busy"
                     : std::holds_alternative<Interrupted>(*outcome) ? "interrupted"
                                                                     : "took ";
  if (text == "took ") {
    const Taken& taken = std::get<Taken>(*outcome);
    text += std::to_string(taken.which) + (taken.listener ? ", listening" : "");
  }
  return text + "; " + fixture.show();
}

std::string outcome_of(WaitFixture& fixture, const WaitPolicy& policy, std::function<void()> event = nullptr)
{
  TickingObserver observer(std::move(event));
  return outcome_of(fixture, policy, observer);
}

}  // namespace

TEST_CASE("waiting for one: in the queue at once, one listener, one check, and the message of the hand-over")
{
  WaitFixture fixture(1);
  CHECK(outcome_of(fixture, for_ever, [&] { fixture.hand_over(0); }) == "took 0, listening; taken: 0; queues:");
  CHECK(fixture.requests() == "stand 0, listen 1, check 0, stand 0");
}

TEST_CASE("waiting for one: a server that goes away while another waiter has to confirm is asked with pauses")
{
  WaitFixture fixture(1);
  fixture.fails_from = 4;
  const WaitPolicy policy{.until = BootClock().now() + 300ms, .waits = true, .server_timeout = 5s};
  outcome_of(fixture, policy, [&] { fixture.say(0, {.confirm_within = 0ms}); });
  CHECK(fixture.count("stand") < 20);
}

TEST_CASE("waiting for one: a server that is slow when time is over makes the lock busy; one that stays away is away")
{
  for (const ErrorCode failure : {ErrorCode::unreachable, ErrorCode::server_not_ready}) {
    WaitFixture slow(1);
    slow.fails_from = 4;
    slow.failure = failure;
    slow.had_spoken = true;
    slow.is_late = failure == ErrorCode::unreachable;
    const WaitPolicy brief{.until = BootClock().now() + 100ms, .waits = true, .server_timeout = 5s};
    CHECK(outcome_of(slow, brief).starts_with("busy; "));
  }
  WaitFixture gone(1);
  gone.fails_from = 4;
  gone.had_spoken = true;  // and is refused now
  CHECK(outcome_of(gone, {.until = BootClock().now() + 100ms, .waits = true, .server_timeout = 5s})
            .starts_with("lost; "));
  WaitFixture away(1);
  away.fails_from = 4;
  away.is_late = true;
  const WaitPolicy longer{.until = BootClock().now() + 1300ms, .waits = true, .server_timeout = 5s};
  CHECK(outcome_of(away, longer, [&] { away.say(0, {.look_in = 0ms}); }).starts_with("lost; "));
}

TEST_CASE("waiting for any: a free one is taken without joining a queue")
{
  for (const WaitPolicy& policy : {for_ever, not_at_all}) {
    WaitFixture fixture(4);
    fixture.locks[1].is_free = true;
    TickingObserver observer(nullptr);
    CHECK(outcome_of(fixture, policy, observer, 3) == "took 1; taken: 1; queues:");
    CHECK(fixture.requests() == "look 3, look 0, look 1");
  }
}

TEST_CASE("waiting for any: chance says where the round begins")
{
  for (std::size_t first = 0; first < 4; ++first) {
    WaitFixture fixture(4);
    for (WaitFixture::Lock& lock : fixture.locks) {
      lock.is_free = true;
    }
    TickingObserver observer(nullptr);
    CHECK(outcome_of(fixture, for_ever, observer, first + 8).starts_with("took " + std::to_string(first)));
    CHECK(fixture.calls.size() == 1);
  }
}

TEST_CASE("waiting for any: all are busy: in every queue, the first free one is taken, the other queues are left")
{
  WaitFixture fixture(4);
  TickingObserver observer([&] {
    CHECK(fixture.show() == "taken:; queues: 0 1 2 3");
    fixture.hand_over(2);
  });
  CHECK(outcome_of(fixture, for_ever, observer, 1) == "took 2; taken: 2; queues:");
  CHECK(fixture.requests() ==
        "look 1, look 2, look 3, look 0, listen 4, stand 1, stand 2, stand 3, stand 0, stand 2, leave 1, leave 3, "
        "leave 0");
}

TEST_CASE("waiting for any: where another client waits already, all are busy: the others are not looked at first")
{
  WaitFixture fixture(4);
  fixture.locks[1].ahead = 1;
  TickingObserver observer([&] { fixture.hand_over(2); });
  CHECK(outcome_of(fixture, for_ever, observer, 1) == "took 2; taken: 2; queues:");
  CHECK(fixture.requests() ==
        "look 1, listen 4, stand 2, stand 3, stand 0, stand 1, stand 2, leave 1, leave 3, leave 0");
}

TEST_CASE("waiting for any: no two tickets of a waiter are alike, so that no waiter is first in every queue")
{
  WaitFixture fixture(4);
  outcome_of(fixture, for_ever, [&] { fixture.hand_over(2); });
  std::set<std::uint64_t> tickets;
  for (const WaitFixture::Lock& lock : fixture.locks) {
    tickets.insert(lock.ticket);
  }
  CHECK(tickets.size() == 4);
  CHECK(*tickets.rbegin() - *tickets.begin() < 20'000);  // microseconds
}

TEST_CASE("waiting for any: two are handed over at once: one is kept, one passes on")
{
  WaitFixture fixture(3);
  const std::string outcome = outcome_of(fixture, for_ever, [&] {
    fixture.hand_over(0);
    fixture.hand_over(2);
    CHECK(fixture.show() == "taken: 0 2; queues: 1");
  });
  const bool has_zero = outcome == "took 0; taken: 0; queues:";
  const bool has_two = outcome == "took 2; taken: 2; queues:";
  CHECK_MESSAGE((has_zero || has_two), outcome);
  CHECK(fixture.count(has_zero ? "leave 2" : "leave 0") == 1);
}

TEST_CASE("waiting for any: a lock handed over during an acquire or a release of another is passed on at any time")
{
  WaitFixture untouched(4);
  outcome_of(untouched, for_ever, [&] { untouched.hand_over(2); });
  const std::size_t calls = untouched.calls.size();
  REQUIRE(calls > 10);
  for (std::size_t moment = 1; moment <= calls; ++moment) {
    CAPTURE(moment);
    WaitFixture fixture(4);
    fixture.with_call = [&] {
      if (fixture.calls.size() == moment) {
        fixture.hand_over(0);
        fixture.hand_over(3);
      }
    };
    const std::string outcome = outcome_of(fixture, for_ever, [&] { fixture.hand_over(2); });
    const std::string which = outcome.substr(5, 1);
    CHECK(outcome == "took " + which + "; taken: " + which + "; queues:");
  }
}

TEST_CASE("waiting for any: a late refusal by one lock keeps the waiter in the other queues")
{
  WaitFixture fixture(3);
  int rests = 0;
  fixture.with_call = [&] {
    if (fixture.calls.back() == "stand 1" && ++rests == 2) {
      fixture.hand_over(2);
    }
  };
  CHECK(outcome_of(fixture, for_ever, [&] { fixture.say(1, {.look_in = 0ms}); }) == "took 2; taken: 2; queues:");
}

TEST_CASE("waiting for any: when time is over, or by a signal, all queues are left")
{
  WaitFixture patient(3);
  const BootClock clock;
  CHECK(outcome_of(patient, {.until = clock.now() + 1s, .waits = true, .server_timeout = 5s}) ==
        "busy; taken:; queues:");
  CHECK(patient.count("leave") == 3);

  WaitFixture stopped(3);
  StopSource stop;
  TickingObserver observer([&] { stop.request(); });
  CHECK(outcome_of(stopped, for_ever, observer, 0, stop.token()) == "interrupted; taken:; queues:");
  CHECK(stopped.count("leave") == 3);
}

TEST_CASE("waiting for any: without waiting each is asked once, and no queue is joined or left")
{
  WaitFixture fixture(3);
  CHECK(outcome_of(fixture, not_at_all) == "busy; taken:; queues:");
  CHECK(fixture.requests() == "look 0, look 1, look 2");
}

TEST_CASE("waiting for any: the user sees the best position")
{
  WaitFixture fixture(3);
  fixture.locks[0].ahead = 7;
  fixture.locks[1].ahead = 9;
  fixture.locks[2].ahead = 3;
  TickingObserver observer([&] { fixture.hand_over(1); });
  outcome_of(fixture, for_ever, observer, 1);
  CHECK(observer.places() ==
        std::vector<std::uint64_t>{9, 3});  // looked at 1, waits for 2, and never got a better position
}

TEST_CASE("waiting for any: a waiter that was cut off asks everywhere, in case it was forgotten or passed")
{
  WaitFixture fixture(3);
  CHECK(outcome_of(fixture, for_ever, [&] {
          fixture.locks[0].is_queued = false;
          fixture.locks[1] = {.is_taken = true};
          fixture.cut_ears();
        }) == "took 1; taken: 1; queues:");
}

// A call that fails has taken effect or not, and the client cannot know. In either case one lock is held in the end,
// and the waiter is in no queue but one to which its departure was never delivered: there it has no subscriber and is
// skipped.
TEST_CASE("waiting for any: whichever call fails, none is lost and never are two taken")
{
  for (const bool takes_effect : {false, true}) {
    bool failed = true;
    for (int at = 2; failed; ++at) {
      CAPTURE(at);
      CAPTURE(takes_effect);
      WaitFixture fixture(3);
      fixture.fail_at = at;
      fixture.takes_effect = takes_effect;
      const std::string outcome = outcome_of(fixture, for_ever, [&] { fixture.hand_over(1); });
      failed = static_cast<int>(fixture.calls.size()) >= at;
      const bool never_left =
          failed && !takes_effect && fixture.calls[static_cast<std::size_t>(at - 1)].starts_with("leave");
      if (never_left) {
        CHECK(outcome.starts_with("took 1; taken: 1; queues:"));
      } else {
        CHECK(outcome == "took 1; taken: 1; queues:");
      }
    }
  }
}

TEST_CASE("waiting for one: a waiter cut off before the first answer asks again, if the server had answered before")
{
  for (const bool takes_effect : {false, true}) {
    WaitFixture fixture(1);
    fixture.fail_at = 1;
    fixture.had_spoken = true;
    fixture.takes_effect = takes_effect;
    CHECK(outcome_of(fixture, for_ever, [&] { fixture.hand_over(0); }) == "took 0, listening; taken: 0; queues:");
  }
  WaitFixture impatient(1);
  impatient.fail_at = 1;
  impatient.had_spoken = true;
  CHECK(outcome_of(impatient, not_at_all) == "lost; taken:; queues:");
}

TEST_CASE("waiting for one: a waiter whose change did not get through a crowd keeps its connection and its place")
{
  for (const int fail_at : {1, 4}) {  // the first request; the one after the hand-over
    CAPTURE(fail_at);
    WaitFixture fixture(1);
    fixture.locks[0].is_free = fail_at == 1;
    fixture.fail_at = fail_at;
    fixture.failure = ErrorCode::server_not_ready;
    fixture.had_spoken = true;
    const std::string outcome = outcome_of(fixture, for_ever, [&] { fixture.hand_over(0); });
    CHECK(outcome == (fail_at == 1 ? "took 0; taken: 0; queues:" : "took 0, listening; taken: 0; queues:"));
    CHECK(fixture.count("listen") == (fail_at == 1 ? 0 : 1));
    CHECK(fixture.drops == 0);
  }
}

TEST_CASE("waiting for any: the wait ends when each line is full, and a waiter that one line takes stands in all")
{
  WaitFixture one(1);
  one.locks[0].is_full = true;
  CHECK(outcome_of(one, for_ever) == "busy; taken:; queues:");
  CHECK(one.requests() == "stand 0");

  WaitFixture all(2);
  all.locks[0].is_full = all.locks[1].is_full = true;
  CHECK(outcome_of(all, for_ever) == "busy; taken:; queues:");
  CHECK(all.requests() == "look 0, look 1, listen 2, stand 0, stand 1");

  WaitFixture some(3);
  some.locks[0].is_full = some.locks[2].is_full = true;
  TickingObserver observer([&] {
    CHECK(some.show() == "taken:; queues: 0 1 2");
    some.hand_over(0);
  });
  CHECK(outcome_of(some, for_ever, observer) == "took 0; taken: 0; queues:");
}

TEST_CASE("waiting for one: a caller that was in line in an earlier attempt joins a full line")
{
  WaitFixture fixture(1);
  fixture.locks[0].is_full = true;
  WaitPolicy again = for_ever;
  again.was_in_line = true;
  CHECK(outcome_of(fixture, again, [&] { fixture.hand_over(0); }) == "took 0, listening; taken: 0; queues:");
}

TEST_CASE("waiting for any: a lock whose grant got lost is released")
{
  WaitFixture fixture(3);
  fixture.locks[0].is_free = true;
  fixture.fail_at = 1;
  fixture.takes_effect = true;
  CHECK(outcome_of(fixture, for_ever) == "lost; taken:; queues:");

  WaitFixture later(3);
  later.locks[1].is_free = true;
  later.fail_at = 2;
  later.takes_effect = true;
  CHECK(outcome_of(later, not_at_all) == "lost; taken:; queues:");
}
