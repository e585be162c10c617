// SPDX-License-Identifier: Apache-2.0
// A waiter that takes its lock by the message of a hand-over, without asking the server once more.
#include "lock/waiting.h"

#include "support/silent_observer.h"
#include "support/test.h"
#include "support/wait_fixture.h"

using namespace rlock::test;

namespace {

constexpr Instant asked{1h};
constexpr ServerTime answered{1'790'000'000s};
constexpr Millis claim{2000};

// Of a hand-over at that time after the last answer, by the server's clock.
Handover handed_over(ServerTime after_answer) { return {.fence = 7, .at = answered + after_answer, .lease = claim}; }

class Observer final : public SilentObserver {
 public:
  explicit Observer(std::function<void()> event) : m_event(std::move(event)) {}
  [[nodiscard]] Instant due() const override { return m_event ? Instant{} : far_future; }
  void tick() override { std::exchange(m_event, nullptr)(); }

 private:
  std::function<void()> m_event;  // runs when the waiter rests
};

ServerTime server_time() { return std::chrono::floor<ServerTime>(BootClock().now().time_since_epoch()) + 900'000s; }

// On a server that tells its time. "by message", or "asked" when the waiter asked the server before it took the lock.
std::string taken_after(const std::function<void(WaitFixture&)>& event, bool takes_message = true,
                        bool tells_time = true)
{
  WaitFixture fixture(1);
  fixture.server_time = tells_time ? server_time : std::function<ServerTime()>();
  const auto store = store_of(fixture);
  const BootClock clock;
  SystemRng rng;
  const LockSpec spec{.name = *LockName::parse("k:0"), .kind = {}, .ttl = 30s, .who = {}, .once = {}};
  const WaitPolicy policy{.until = std::nullopt, .waits = true, .server_timeout = 5s, .takes_message = takes_message};
  Observer observer([&] { event(fixture); });
  const auto outcome =
      wait_and_acquire(*store, spec, Owner::of("us:1"), policy, clock, rng, StopToken::never(), observer);
  const auto& taken = std::get<Taken>(*outcome);
  const bool asked_again = fixture.count("stand") > 1;
  CHECK(taken.is_claim != asked_again);
  CHECK(taken.grant.fence == (asked_again ? 1 : 7));
  CHECK((asked_again || taken.listener != nullptr));
  return asked_again ? "asked" : "by message";
}

Handover young() { return {.fence = 7, .at = server_time(), .lease = claim}; }

}  // namespace

TEST_CASE("hand-over: counts from when the server says, and no later")
{
  const auto at = handed_over_at(handed_over(10s), asked, answered, asked + 10s + 5ms);
  REQUIRE(at);
  CHECK(*at <= asked + 10s);
  CHECK(*at >= asked + 10s - 102ms);  // 1 % for the drift of two clocks, and 2 ms
}

TEST_CASE("hand-over: a message that says too little about its age is confirmed first")
{
  struct Row {
    const char* why;
    ServerTime after_answer;
    Millis heard_after;
    bool may_begin;
  };
  const Row rows[] = {
      {"at once", 10ms, 11ms, true},
      {"older than the last answer, which says that the lock is busy", -1ms, 1ms, false},
      {"as old as the last answer", 0ms, 0ms, false},
      {"half of the claim is left", 1s, 1s + 950ms, true},
      {"less than half of the claim is left", 1s, 1s + 990ms, false},
      {"the waiter was stopped until the claim was over", 1s, 4s, false},
      {"the server's clock went ahead, so the message is from the future", 5s, 1s, false},
      {"the server's clock went ahead, and the message is late", 5s, 5s + 100ms, true},
      {"a time that no server has", (ServerTime{std::int64_t{1} << 52} - answered), 1s, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const auto at = handed_over_at(handed_over(row.after_answer), asked, answered, asked + row.heard_after);
    CHECK(at.has_value() == row.may_begin);
    CHECK((!at || *at <= asked + row.heard_after));
  }
}

TEST_CASE("hand-over: the message stands for the answer where the caller allows it and the server told its time")
{
  const auto hand_over = [](WaitFixture& fixture) { fixture.hand_over(0, young()); };
  CHECK(taken_after(hand_over) == "by message");
  CHECK(taken_after(hand_over, false) == "asked");
  CHECK(taken_after(hand_over, true, false) == "asked");
}

TEST_CASE("hand-over: repeated, out of order or with another message")
{
  CHECK(taken_after([](WaitFixture& fixture) {
          fixture.hand_over(0, young());
          fixture.say(0, {.look_in = 0ms, .handover = young()});
        }) == "by message");
  CHECK(taken_after([](WaitFixture& fixture) {
          Handover late = young();
          late.at -= 3s;
          fixture.hand_over(0, late);
        }) == "asked");
  CHECK(taken_after([](WaitFixture& fixture) {
          fixture.hand_over(0, young());
          fixture.say(0, {.look_in = 0ms});  // a request for release, for instance
        }) == "asked");
  CHECK(taken_after([](WaitFixture& fixture) {
          fixture.hand_over(0, young());
          fixture.cut_ears();
        }) == "asked");
}
