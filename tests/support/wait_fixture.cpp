// SPDX-License-Identifier: Apache-2.0
#include "support/wait_fixture.h"

#include "support/bare_store.h"

#include <optional>
#include <span>

namespace rlock::test {
namespace {

class ScriptedListener final : public Listener {
 public:
  ScriptedListener(WaitFixture& fixture, std::size_t locks) : m_fixture(fixture), m_locks(locks) {}
  [[nodiscard]] int fd() const override { return m_fixture.readable; }
  Result<Hints> heard(const Clock&) override
  {
    eventfd_t count = 0;
    ::eventfd_read(m_fixture.readable, &count);
    if (std::exchange(m_fixture.drops_listener, false)) {
      return Error{ErrorCode::unreachable, "cut"};
    }
    Hints hints;
    for (std::size_t which = 0; which < m_locks; ++which) {
      hints.push_back(std::exchange(m_fixture.locks[which].said, Hint{}));
    }
    return hints;
  }
  Result<Done> hear_releases(std::size_t, const CallLimits&) override { return Done{}; }
  Result<Done> hear_as_holder(std::span<const Owner>, const CallLimits&) override { return Done{}; }

 private:
  WaitFixture& m_fixture;
  std::size_t m_locks;
};

class ScriptedStore final : public BareStore {
 public:
  explicit ScriptedStore(WaitFixture& fixture)
      : BareStore("a waiter does not ask that", ErrorCode::internal), m_fixture(fixture)
  {
  }

  Result<Attempt> acquire(const LockSpec& spec, const Owner&, const AcquireOptions& options,
                          const CallLimits& limit) override
  {
    const std::size_t which = number(spec.name);
    WaitFixture::Lock& lock = m_fixture.locks[which];
    const LeaseTerm lease{.from = BootClock().now(), .length = spec.ttl};
    return call<Attempt>(options.queues ? "stand" : "look", which, limit, [&]() -> Attempt {
      if (lock.is_free || lock.is_taken) {
        lock.is_free = false;
        lock.is_taken = true;
        return Granted{.fence = 1, .count = 1, .lease = lease};
      }
      if (lock.is_full && spec.max_waiting && options.queues && options.ticket == 0) {
        return Busy{.ttl = std::chrono::seconds(60), .holder = {}, .full = 3};
      }
      lock.is_queued = lock.is_queued || options.queues;
      lock.ticket = options.ticket != 0 ? options.ticket : 1'000'000;
      return Busy{.ttl = std::chrono::seconds(60),
                  .holder = Holder{Owner::of("o:1"), 1, HolderInfo{}},
                  .waiters_ahead = lock.ahead,
                  .ticket = options.queues ? lock.ticket : 0,
                  .at = m_fixture.server_time ? std::optional(m_fixture.server_time()) : std::nullopt};
    });
  }
  Result<bool> is_queued(const LockSpec& spec, const Owner&, const CallLimits& limit) override
  {
    const std::size_t which = number(spec.name);
    return call<bool>("check", which, limit, [&] { return m_fixture.locks[which].is_queued; });
  }
  Result<Release> release(const LockSpec& spec, const Hold&, const ReleaseOptions&, const CallLimits& limit) override
  {
    const std::size_t which = number(spec.name);
    WaitFixture::Lock& lock = m_fixture.locks[which];
    return call<Release>("leave", which, limit, [&]() -> Release {
      lock.is_queued = false;
      if (std::exchange(lock.is_taken, false)) {
        return Released{};  // and passes the lock on: not free
      }
      return Dequeued{};
    });
  }
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner&,
                                           const CallLimits& limit) override
  {
    return call<std::unique_ptr<Listener>>("listen", specs.size(), limit,
                                           [&] { return std::make_unique<ScriptedListener>(m_fixture, specs.size()); });
  }
  void drop_connection() override { ++m_fixture.drops; }

 private:
  static std::size_t number(const LockName& name) { return std::stoul(name.text().substr(2)); }  // "k:3"

  template <typename T, typename Effect>
  Result<T> call(const std::string& what, std::size_t which, const CallLimits& limit, Effect effect)
  {
    if (limit.stop.requested()) {
      return Error{ErrorCode::interrupted, "stopped"};
    }
    m_fixture.calls.push_back(what + " " + std::to_string(which));
    const auto number_of_call = static_cast<int>(m_fixture.calls.size());
    const bool fails =
        number_of_call == m_fixture.fail_at || (m_fixture.fails_from != 0 && number_of_call >= m_fixture.fails_from);
    std::optional<T> answer;
    if (!fails || m_fixture.takes_effect) {
      answer.emplace(effect());
    }
    if (m_fixture.with_call) {
      m_fixture.with_call();
    }
    if (fails) {
      return Error{
          .code = m_fixture.failure, .text = "lost", .was_there = m_fixture.had_spoken, .late = m_fixture.is_late};
    }
    return *std::move(answer);
  }

  WaitFixture& m_fixture;
};

}  // namespace

std::vector<LockSpec> WaitFixture::specs() const
{
  std::vector<LockSpec> specs;
  for (std::size_t i = 0; i < locks.size(); ++i) {
    specs.push_back({.name = *LockName::parse("k:" + std::to_string(i)),
                     .kind = {},
                     .ttl = std::chrono::seconds(30),
                     .who = {},
                     .once = {},
                     .max_waiting = 3});
  }
  return specs;
}

std::unique_ptr<LockStore> store_of(WaitFixture& fixture) { return std::make_unique<ScriptedStore>(fixture); }

}  // namespace rlock::test
