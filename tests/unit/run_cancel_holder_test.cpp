// SPDX-License-Identifier: Apache-2.0
// The client that asks a holder to stop, on a server and with a clock that the test controls.
#include "run/force.h"

#include "base/defaults.h"
#include "support/fake_store.h"
#include "support/stepped_clock.h"
#include "support/test.h"

#include <memory>

using namespace rlock::test;

namespace {

class CancelHolderFixture {
 public:
  // The refusal that a waiter gets while `owner` has the lock.
  void refused_because_of(const std::string& owner)
  {
    cancel.in_the_way({.ttl = 30s, .holder = Holder{.owner = Owner::of(owner), .count = 1, .info = std::nullopt}});
  }
  void hand_to(const std::string& owner)
  {
    server->forget_all();
    const CallLimits limit{.deadline = clock.now() + 1s, .stop = StopToken::never()};
    REQUIRE(store->acquire(spec, Owner::of(owner), {}, limit));
    m_asked = server->asked().size();
  }
  [[nodiscard]] bool is_due() const { return cancel.due() <= clock.now(); }
  [[nodiscard]] bool rests() const { return cancel.due() == far_future; }
  bool step() { return cancel.step(StopToken::never()); }
  // Until so much time has passed; true: a step said that the lock may be free.
  bool go_on_for(Millis time)
  {
    const Instant end = clock.now() + time;
    while (cancel.due() <= end) {
      clock.add(std::max(Millis{0}, std::chrono::ceil<Millis>(cancel.due() - clock.now())));
      if (step()) {
        return true;
      }
    }
    clock.add(std::chrono::ceil<Millis>(end - clock.now()));
    return false;
  }
  // What the server was asked since the last call: "inspect, join alice".
  std::string asked()
  {
    const auto all = server->asked();
    std::string text;
    for (; m_asked < all.size(); ++m_asked) {
      const std::string request = all[m_asked].substr(0, all[m_asked].find_last_not_of(' ') + 1);
      if (!text.ends_with(request)) {  // repeated requests count once
        text += (text.empty() ? "" : ", ") + request;
      }
    }
    return text;
  }

  SteppedClock clock;
  const Log log{Verbosity::quiet};
  const std::shared_ptr<FakeServer> server = std::make_shared<FakeServer>();
  const std::unique_ptr<LockStore> store = store_on(server, clock);
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 30s, .who = {}, .once = {}};
  CancelHolder cancel{*store, spec, 5s, clock, log};

 private:
  std::size_t m_asked = 0;
};

}  // namespace

#define CANCEL_HOLDER_CASE(title) CASE_WITH(CancelHolderFixture, waiter, title)

CANCEL_HOLDER_CASE("cancel holder: nothing is sent while no holder is in the way, and no request to one that is gone")
{
  CHECK(waiter.rests());
  waiter.cancel.in_the_way({.ttl = 30s, .holder = std::nullopt});
  CHECK(waiter.rests());

  waiter.refused_because_of("alice");
  CHECK(waiter.is_due());
  CHECK(waiter.step());  // the lock is free by now
  CHECK(waiter.asked() == "inspect");
  CHECK(waiter.rests());
}

CANCEL_HOLDER_CASE(
    "cancel holder: a holder is asked once, however often it refuses the waiter, and looked at until it released")
{
  waiter.hand_to("alice");
  waiter.refused_because_of("alice");
  CHECK_FALSE(waiter.go_on_for(1s));
  waiter.refused_because_of("alice");
  CHECK_FALSE(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "inspect, join alice, look alice");
  waiter.server->forget_all();
  CHECK(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "look alice");
  CHECK(waiter.rests());
}

CANCEL_HOLDER_CASE("cancel holder: the next holder is asked as well, and the one before no more")
{
  waiter.hand_to("alice");
  waiter.refused_because_of("alice");
  CHECK_FALSE(waiter.go_on_for(100ms));
  waiter.hand_to("bob");
  CHECK(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "look alice");
  waiter.refused_because_of("bob");
  CHECK_FALSE(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "inspect, join bob, look bob");

  waiter.hand_to("carol");
  waiter.refused_because_of("carol");  // before the next look at bob
  CHECK_FALSE(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "inspect, join carol, look carol");

  waiter.refused_because_of("dave");  // who is gone before the first look
  CHECK(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "inspect");
}

TEST_CASE("cancel holder: each of its requests may fail, and is sent again")
{
  struct Row {
    const char* failing;
    const char* before;
  };
  for (const Row& row : {Row{"inspect", "inspect"}, Row{"join", "inspect, join alice"},
                         Row{"look", "inspect, join alice, look alice"}}) {
    CAPTURE(row.failing);
    CancelHolderFixture waiter;
    waiter.hand_to("alice");
    waiter.server->refuse(row.failing);
    waiter.refused_because_of("alice");
    CHECK_FALSE(waiter.go_on_for(900ms));
    CHECK(waiter.asked() == row.before);
    waiter.server->refuse("");
    CHECK_FALSE(waiter.go_on_for(2s));
    CHECK(waiter.asked().ends_with("look alice"));
    waiter.server->forget_all();
    CHECK(waiter.go_on_for(1s));
  }
}

CANCEL_HOLDER_CASE("cancel holder: a foreign holder that never stops is taken away after the grace")
{
  waiter.hand_to("alice");
  waiter.refused_because_of("alice");
  CHECK_FALSE(waiter.go_on_for(default_force_grace - 500ms));
  CHECK(waiter.asked() == "inspect, join alice, look alice");
  CHECK(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "look alice, take alice");
  CHECK(waiter.server->holder() == std::nullopt);
}

CANCEL_HOLDER_CASE(
    "cancel holder: an rlock that never stops is renewed no more, and waited for until its lease is over")
{
  waiter.server->have_rlock_holders();
  waiter.hand_to("alice");
  waiter.refused_because_of("alice");
  CHECK_FALSE(waiter.go_on_for(default_force_grace + 20s));
  CHECK(waiter.asked() == "inspect, join alice, look alice, revoke alice");
  CHECK(waiter.server->holder() == "alice");
  waiter.server->forget_all();  // the lease is over
  CHECK(waiter.go_on_for(1s));
  CHECK(waiter.rests());
}

CANCEL_HOLDER_CASE("cancel holder: one whose job does not die is not asked a second time, and its successor is asked")
{
  waiter.server->have_rlock_holders();
  waiter.server->be_stopping(30s);
  waiter.hand_to("alice");
  waiter.refused_because_of("alice");
  CHECK_FALSE(waiter.go_on_for(30s + default_force_grace - 1s));
  CHECK_FALSE(waiter.rests());
  CHECK_FALSE(waiter.go_on_for(2s));
  CHECK(waiter.asked() == "inspect, join alice, look alice");
  CHECK(waiter.rests());
  waiter.refused_because_of("alice");
  CHECK(waiter.rests());
  waiter.hand_to("bob");
  waiter.refused_because_of("bob");
  CHECK_FALSE(waiter.go_on_for(1s));
  CHECK(waiter.asked() == "inspect, join bob, look bob");
}
