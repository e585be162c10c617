// SPDX-License-Identifier: Apache-2.0
// A store of the table in stores.h, two clients of it, and requests that fail the test case when they get no answer.
#pragma once

#include "contract/stores.h"

#include <algorithm>
#include <optional>

#include <poll.h>

namespace rlock::test {

using namespace rlock;
using namespace std::chrono_literals;

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

  static LockSpec spec(LockKind kind = Plain{}, Millis ttl = 30s)
  {
    return {.name = *LockName::parse("k"), .kind = kind, .ttl = ttl, .who = {.host = "h", .pid = 1}, .once = {}};
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
  for (const StoreRow& row : stores_to_test()) {
    SUBCASE(row.name)
    {
      Tested tested(row);
      promise(tested);
    }
  }
}

// Whether a message tells the owner within ten seconds to ask the store.
inline bool hears(Listener& listener)
{
  const Instant end = Tested::clock().now() + 10s;
  for (Millis left = 10s; left > 0ms; left = std::chrono::ceil<Millis>(end - Tested::clock().now())) {
    pollfd wait{.fd = listener.fd(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, static_cast<int>(left.count()));
    const auto hints = listener.heard(Tested::clock());
    REQUIRE_MESSAGE(hints, hints.error().text);
    if (std::ranges::any_of(*hints, [](const Hint& hint) { return hint.look_in.has_value(); })) {
      return true;
    }
  }
  return false;
}

inline void check_that_a_waiter_hears_the_release(Tested& store)
{
  const Owner holder = Tested::owner();
  const Owner waiter = Tested::owner();
  const LockSpec wanted = Tested::spec();
  REQUIRE(store.granted(store.one(), wanted, holder));
  const auto listener = store.other().listen({&wanted, 1}, waiter, Tested::soon());
  REQUIRE(listener);
  store.ask(store.other(), wanted, waiter, true);
  store.release(store.one(), holder);
  CHECK(hears(**listener));
}

}  // namespace rlock::test

// A promise that each store keeps.
#define STORE_CASE(title) STORE_CASE_NAMED(DOCTEST_ANONYMOUS(store_case_), title)
#define STORE_CASE_NAMED(body, title)       \
  static void body(Tested& store);          \
  TEST_CASE(title) { on_each_store(body); } \
  static void body(Tested& store)

// One that each store with a queue keeps.
#define STORE_QUEUE_CASE(title) STORE_QUEUE_CASE_NAMED(DOCTEST_ANONYMOUS(store_case_), title)
#define STORE_QUEUE_CASE_NAMED(body, title) \
  static void body(Tested& store);          \
  TEST_CASE(title)                          \
  {                                         \
    on_each_store([](Tested& store) {       \
      if (store.has_queue()) {              \
        body(store);                        \
      }                                     \
    });                                     \
  }                                         \
  static void body(Tested& store)
