// SPDX-License-Identifier: Apache-2.0
// The promises of lock/store.h, kept by every store of the table in stores.h.
#include "contract/stores.h"

#include "lock/abilities.h"
#include "support/wait_until.h"

#include <algorithm>

#include <poll.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// One store, a second client of the same servers, and a lock `k`.
class Tested {
 public:
  explicit Tested(const StoreRow& row)
      : m_servers(row.start()), m_one(open()), m_other(open()), m_has_queue(row.has_queue)
  {
  }

  LockStore& one() { return *m_one; }
  LockStore& other() { return *m_other; }
  [[nodiscard]] bool has_queue() const { return m_has_queue; }

  static LockSpec spec(Mode mode = Plain{}, Millis ttl = 30s)
  {
    return {.name = *LockName::parse("k"), .mode = mode, .ttl = ttl, .who = {.host = "h", .pid = 1}, .once = {}};
  }
  static Owner owner()
  {
    static SystemRng rng;
    return Owner::fresh(rng, 1);
  }
  static CallLimits soon() { return {.deadline = clock().now() + 5s, .stop = StopToken::never()}; }

  Attempt ask(LockStore& store, const LockSpec& spec, const Owner& owner, bool queues = false)
  {
    const auto answer = store.acquire(spec, owner, {.queues = queues}, soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return *answer;
  }
  std::optional<Granted> granted(LockStore& store, const LockSpec& spec, const Owner& owner)
  {
    const Attempt attempt = ask(store, spec, owner);
    const auto* grant = std::get_if<Granted>(&attempt);
    return grant != nullptr ? std::optional(*grant) : std::nullopt;
  }
  Release release(LockStore& store, const Hold& hold, const ReleaseOptions& options = {})
  {
    const auto answer = store.release(spec(), hold, options, soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return *answer;
  }
  LockState state()
  {
    const auto answer = m_other->inspect(spec().name, soon());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return *answer;
  }
  static const Clock& clock()
  {
    static const BootClock boot_clock;
    return boot_clock;
  }

 private:
  std::unique_ptr<LockStore> open()
  {
    auto store = open_store(m_servers.spec, clock(), StopToken::never());
    REQUIRE(store);
    return *std::move(store);
  }

  RunningServers m_servers;
  std::unique_ptr<LockStore> m_one;
  std::unique_ptr<LockStore> m_other;
  bool m_has_queue;
};

template <typename Promise>
void on_each_store(Promise promise)
{
  for (const StoreRow& row : stores) {
    SUBCASE(row.name)
    {
      Tested tested(row);
      promise(tested);
    }
  }
}

// Hears a message within ten seconds.
bool hears(Listener& listener)
{
  pollfd wait{.fd = listener.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 10'000) == 1 && listener.heard(Tested::clock());
}

}  // namespace

TEST_CASE("contract: a lock has one holder, and a refusal names it")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const Attempt refused = store.ask(store.other(), Tested::spec(), Tested::owner());
    REQUIRE(std::holds_alternative<Busy>(refused));
    REQUIRE(std::get<Busy>(refused).holder);
    CHECK(std::get<Busy>(refused).holder->owner == holder);
    CHECK(std::get<Busy>(refused).ttl > Millis{0});
  });
}

TEST_CASE("contract: readers share the lock, a writer does not")
{
  on_each_store([](Tested& store) {
    const Owner reader = Tested::owner();
    const Owner second = Tested::owner();
    CHECK(store.granted(store.one(), Tested::spec(Reader{}), reader));
    CHECK(store.granted(store.other(), Tested::spec(Reader{}), second));
    CHECK_FALSE(store.granted(store.other(), Tested::spec(Writer{}), Tested::owner()));
    for (const Owner& each : {reader, second}) {
      const auto released = store.one().release(Tested::spec(Reader{}), each, {}, Tested::soon());
      REQUIRE(released);
      CHECK(std::holds_alternative<Released>(*released));
    }
    CHECK(store.granted(store.other(), Tested::spec(Writer{}), Tested::owner()));
  });
}

TEST_CASE("contract: an acquisition that is sent twice is granted twice and counts once")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const auto again = store.granted(store.one(), Tested::spec(), holder);
    REQUIRE(again);
    CHECK(again->count == 1);
    CHECK(std::holds_alternative<Released>(store.release(store.one(), holder)));
  });
}

TEST_CASE("contract: nested holds are counted, each once")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    SystemRng rng;
    const Hold nested = Hold::nested_in(holder, rng, 1);
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    for (int sent = 0; sent < 2; ++sent) {
      const auto entered = store.other().reenter(Tested::spec(), nested, Tested::soon());
      REQUIRE(entered);
      REQUIRE(std::holds_alternative<Granted>(*entered));
      CHECK(std::get<Granted>(*entered).count == 2);
    }
    const Release inner = store.release(store.other(), nested);
    REQUIRE(std::holds_alternative<StillHeld>(inner));
    CHECK(std::get<StillHeld>(inner).count == 1);
    CHECK(std::holds_alternative<Released>(store.release(store.one(), holder)));
    CHECK_FALSE(store.state().held());
  });
}

TEST_CASE("contract: a lock that the owner does not hold is not entered again, and stays free")
{
  on_each_store([](Tested& store) {
    SystemRng rng;
    const auto entered = store.one().reenter(Tested::spec(), Hold::nested_in(Tested::owner(), rng, 1), Tested::soon());
    REQUIRE(entered);
    CHECK(std::holds_alternative<NotHeld>(*entered));
    CHECK_FALSE(store.state().held());
  });
}

TEST_CASE("contract: only the owner can release")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    CHECK(std::holds_alternative<NotHeld>(store.release(store.other(), Tested::owner())));
    const LockState state = store.state();
    REQUIRE(state.held());
    CHECK(state.holders.front().owner == holder);
  });
}

TEST_CASE("contract: the renewal of a held lock succeeds, that of a lost one says that it is lost")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const auto renewed = store.one().renew(Tested::spec(), holder, Tested::soon());
    REQUIRE(renewed);
    CHECK(std::holds_alternative<Renewed>(*renewed));
    store.release(store.one(), holder);
    REQUIRE(store.granted(store.other(), Tested::spec(), Tested::owner()));
    const auto lost = store.one().renew(Tested::spec(), holder, Tested::soon());
    REQUIRE(lost);
    CHECK(std::holds_alternative<NotHeld>(*lost));
  });
}

TEST_CASE("contract: a hold ends with its ttl, and a renewal lengthens it")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(Plain{}, 500ms), holder));
    CHECK(store.one().renew(Tested::spec(Plain{}, 1s), holder, Tested::soon()));
    const Millis left = store.state().ttl.value_or(0ms);
    CHECK(left > 500ms);
    CHECK(left <= 1s);
    wait_until([&] { return !store.state().held(); }, "the ttl is over");
    CHECK(store.granted(store.other(), Tested::spec(), Tested::owner()));
  });
}

TEST_CASE("contract: the fencing number grows with each holder")
{
  on_each_store([](Tested& store) {
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
      LockStore& client = i % 2 == 0 ? store.one() : store.other();
      const Owner holder = Tested::owner();
      const auto grant = store.granted(client, Tested::spec(), holder);
      REQUIRE(grant);
      CHECK(grant->fence > last);
      last = grant->fence;
      store.release(client, holder);
    }
  });
}

TEST_CASE("contract: a lock is granted in the order of the queue")
{
  on_each_store([](Tested& store) {
    if (!store.has_queue()) {
      return;
    }
    const Owner holder = Tested::owner();
    const Owner first = Tested::owner();
    const Owner second = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const LockSpec spec = Tested::spec();
    const auto first_listens = store.other().listen({&spec, 1}, first, Tested::soon());
    const auto second_listens = store.other().listen({&spec, 1}, second, Tested::soon());
    REQUIRE(first_listens);
    REQUIRE(second_listens);
    CHECK(std::get<Busy>(store.ask(store.other(), spec, first, true)).waiters_ahead == 0);
    CHECK(std::get<Busy>(store.ask(store.other(), spec, second, true)).waiters_ahead == 1);
    store.release(store.one(), holder);
    CHECK(hears(**first_listens));
    CHECK(std::holds_alternative<Busy>(store.ask(store.other(), spec, second, true)));
    CHECK(std::holds_alternative<Granted>(store.ask(store.other(), spec, first, true)));
  });
}

TEST_CASE("contract: a release makes a waiter that listens look")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    const Owner waiter = Tested::owner();
    const LockSpec spec = Tested::spec();
    REQUIRE(store.granted(store.one(), spec, holder));
    const auto listener = store.other().listen({&spec, 1}, waiter, Tested::soon());
    REQUIRE(listener);
    store.ask(store.other(), spec, waiter, true);
    store.release(store.one(), holder);
    CHECK(hears(**listener));
  });
}

TEST_CASE("contract: a waiter is in the queue until it leaves, and a stranger is not")
{
  on_each_store([](Tested& store) {
    if (!store.has_queue()) {
      return;
    }
    const Owner waiter = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), Tested::owner()));
    const auto is_queued = [&](const Owner& owner) {
      const auto answer = store.other().is_queued(Tested::spec(), owner, Tested::soon());
      REQUIRE(answer);
      return *answer;
    };
    store.ask(store.other(), Tested::spec(), waiter, true);
    CHECK(is_queued(waiter));
    CHECK_FALSE(is_queued(Tested::owner()));
    CHECK(std::holds_alternative<Dequeued>(store.release(store.other(), waiter)));
    CHECK_FALSE(is_queued(waiter));
    CHECK(store.state().held());
  });
}

TEST_CASE("contract: inspect shows the holder, its holds and its info")
{
  on_each_store([](Tested& store) {
    CHECK_FALSE(store.state().held());
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const LockState state = store.state();
    REQUIRE(state.holders.size() == 1);
    CHECK(state.holders.front().owner == holder);
    CHECK(state.holders.front().count == 1);
    REQUIRE(state.holders.front().info);
    CHECK(state.holders.front().info->host == "h");
  });
}

TEST_CASE("contract: a release can keep the lock for a while")
{
  on_each_store([](Tested& store) {
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    CHECK(std::holds_alternative<Released>(store.release(store.one(), holder, {.keep = 1s})));
    CHECK_FALSE(store.granted(store.other(), Tested::spec(), Tested::owner()));
    wait_until([&] { return store.granted(store.other(), Tested::spec(), Tested::owner()).has_value(); },
               "the lock is kept no longer");
  });
}

TEST_CASE("contract: where a store lists locks, it lists those that are held and match")
{
  on_each_store([](Tested& store) {
    if (store.one().listing() == nullptr) {
      return;
    }
    const auto listed = [&](std::string_view pattern) {
      const auto states =
          store.one().listing()->list(pattern, {.clock = Tested::clock(), .timeout = 5s, .whole = Tested::soon()});
      REQUIRE(states);
      return states->size();
    };
    CHECK(listed("*") == 0);
    REQUIRE(store.granted(store.other(), Tested::spec(), Tested::owner()));
    CHECK(listed("k*") == 1);
    CHECK(listed("x*") == 0);
  });
}

TEST_CASE("contract: where a store takes locks away, the renewal of the hold says that it is lost")
{
  on_each_store([](Tested& store) {
    ForceUnlock* const force = store.other().force_unlock();
    if (force == nullptr) {
      return;
    }
    const Owner holder = Tested::owner();
    REQUIRE(store.granted(store.one(), Tested::spec(), holder));
    const ForceCall call{.name = Tested::spec().name, .mode = Plain{}, .owner = holder, .by = "op", .stands_for = 30s};
    const auto asked = force->force(ForceStep::ask, call, Tested::soon());
    REQUIRE(asked);
    CHECK(std::holds_alternative<ForceHeld>(*asked));
    const auto renewed = store.one().renew(Tested::spec(), holder, Tested::soon());
    REQUIRE(renewed);
    REQUIRE(std::holds_alternative<Renewed>(*renewed));
    CHECK(std::get<Renewed>(*renewed).forced->by == "op");
    const auto taken = force->force(ForceStep::take, call, Tested::soon());
    REQUIRE(taken);
    CHECK(std::holds_alternative<ForceBroken>(*taken));
    const auto lost = store.one().renew(Tested::spec(), holder, Tested::soon());
    REQUIRE(lost);
    CHECK(std::holds_alternative<NotHeld>(*lost));
    CHECK(store.granted(store.other(), Tested::spec(), Tested::owner()));
  });
}
