// SPDX-License-Identifier: Apache-2.0
#include "support/fake_store.h"

#include <utility>

namespace rlock::test {

void FakeServer::be(Behavior mood)
{
  const std::lock_guard guard(m_mutex);
  m_mood = mood;
}

void FakeServer::refuse(std::string request)
{
  const std::lock_guard guard(m_mutex);
  m_refused = std::move(request);
}

void FakeServer::ask_for(std::string by)
{
  const std::lock_guard guard(m_mutex);
  m_asked_by = ForceRequest{std::move(by)};
}

void FakeServer::be_stopping(Millis kill_after)
{
  const std::lock_guard guard(m_mutex);
  m_kill_after = kill_after;
}

void FakeServer::have_rlock_holders()
{
  const std::lock_guard guard(m_mutex);
  m_is_rlock = true;
}

void FakeServer::forget_all()
{
  const std::lock_guard guard(m_mutex);
  m_holder.reset();
  m_agreed.reset();
  m_fence = 0;
}

void FakeServer::set_fence(std::uint64_t fence)
{
  const std::lock_guard guard(m_mutex);
  m_fence = fence;
}

void FakeServer::have_a_clock(double pace)
{
  const std::lock_guard guard(m_mutex);
  m_pace = pace;
}

std::optional<std::string> FakeServer::holder() const
{
  const std::lock_guard guard(m_mutex);
  return m_holder;
}

std::uint64_t FakeServer::fence() const
{
  const std::lock_guard guard(m_mutex);
  return m_fence;
}

std::vector<std::string> FakeServer::asked() const
{
  const std::lock_guard guard(m_mutex);
  return m_asked;
}

void FakeServer::give_less(Millis less, Millis earlier)
{
  const std::lock_guard guard(m_mutex);
  m_less = less;
  m_earlier = earlier;
}

void FakeServer::hold_back(Millis answers)
{
  const std::lock_guard guard(m_mutex);
  m_held_back = answers;
}

void FakeServer::fail_after(const FakeServer& other)
{
  const std::lock_guard guard(m_mutex);
  m_mood = Behavior::down;
  m_after = &other;
}

// Without subscribers, and nothing expires.
class FakeStore final : public LockStore {
 public:
  FakeStore(std::shared_ptr<FakeServer> server, const Clock& clock) : m_server(std::move(server)), m_clock(clock) {}

  Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions&,
                          const CallLimits& limit) override
  {
    const Instant sent_at = m_clock.now();
    return answer<Attempt>("acquire", owner, limit, [&]() -> Attempt {
      if (m_server->m_holder && *m_server->m_holder != owner.text()) {
        return Busy{.ttl = Millis{30'000},
                    .holder = Holder{.owner = Owner::of(*m_server->m_holder), .count = 1, .info = std::nullopt}};
      }
      if (!m_server->m_holder) {
        m_server->m_holder = owner.text();
        m_server->m_agreed.reset();
        ++m_server->m_fence;
      }
      return Granted{.fence = m_server->m_fence, .count = 1, .lease = lease_from(sent_at, spec.ttl)};
    });
  }
  Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit) override
  {
    const Instant sent_at = m_clock.now();
    return answer<ReentryResult>("reenter", hold.owner, limit, [&]() -> ReentryResult {
      if (!holds(hold.owner)) {
        return NotHeld{};
      }
      return Granted{.fence = m_server->m_agreed.value_or(m_server->m_fence),
                     .count = 2,
                     .lease = lease_from(sent_at, spec.ttl),
                     .agreed = m_server->m_agreed.has_value()};
    });
  }
  Result<bool> is_queued(const LockSpec&, const Owner&, const CallLimits&) override { return false; }
  Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                        const CallLimits& limit) override
  {
    const Instant sent_at = m_clock.now();
    return answer<Renewal>("renew", owner, limit, [&]() -> Renewal {
      const auto lease = options.only_checks ? std::nullopt : std::optional(lease_from(sent_at, spec.ttl));
      return holds(owner) ? Renewal{Renewed{.lease = lease, .forced = m_server->m_asked_by, .at = time()}}
                          : Renewal{loss()};
    });
  }
  Result<bool> raise_fence(const LockSpec&, const Owner& owner, std::uint64_t fence, const CallLimits& limit) override
  {
    return answer<bool>("raise", owner, limit, [&] {
      if (holds(owner)) {
        m_server->m_fence = std::max(m_server->m_fence, fence);
        m_server->m_agreed = fence;
      }
      return holds(owner);
    });
  }
  Result<Release> release(const LockSpec&, const Hold& hold, const ReleaseOptions& release_options,
                          const CallLimits& limit) override
  {
    return answer<Release>(release_options.announced ? "release" : "take back", hold.owner, limit, [&]() -> Release {
      if (!holds(hold.owner)) {
        return NotHeld{};
      }
      m_server->m_holder.reset();
      return Released{};
    });
  }
  Result<LockState> inspect(const LockName& name, const CallLimits& limit) override
  {
    return answer<LockState>("inspect", Owner::of(""), limit, [&] {
      LockState state{
          .name = name, .kind = Plain{}, .ttl = Millis{1000}, .fence = m_server->m_fence, .holders = {}, .waiting = {}};
      if (m_server->m_holder) {
        state.holders.push_back({.owner = Owner::of(*m_server->m_holder),
                                 .count = 1,
                                 .info = std::nullopt,
                                 .revoked = m_server->m_is_revoked});
      }
      return state;
    });
  }
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec>, const Owner&, const CallLimits&) override
  {
    return Error{ErrorCode::unreachable, "nobody listens here"};
  }
  Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) override
  {
    return answer<ForceAnswer>(std::string(name_of(step)), call.owner, limit, [&]() -> ForceAnswer {
      Holder holder{.owner = call.owner, .count = 1, .info = std::nullopt};
      if (m_server->m_kill_after) {
        holder.info.emplace().kill_after = *m_server->m_kill_after;
      }
      if (!holds(call.owner)) {
        return ForceFree{};
      }
      if (step == ForceStep::take) {
        m_server->m_holder.reset();
        return ForceBroken{.holder = holder};
      }
      m_server->m_is_revoked = m_server->m_is_revoked || step == ForceStep::revoke;
      return ForceHeld{.holder = holder,
                       .listening = m_server->m_kill_after ? 1 : 0,
                       .lasts = Millis{30'000},
                       .silent_for = m_server->m_kill_after ? std::optional(Millis{0}) : std::nullopt,
                       .is_rlock = m_server->m_is_rlock};
    });
  }
  void drop_connection() override {}

 private:
  [[nodiscard]] std::optional<ServerTime> time() const
  {
    constexpr std::chrono::microseconds origin = std::chrono::hours{24 * 365 * 50};
    const std::chrono::duration<double, std::micro> passed = m_clock.now().time_since_epoch();
    return m_server->m_pace
               ? std::optional{origin +
                               std::chrono::duration_cast<std::chrono::microseconds>(passed * *m_server->m_pace)}
               : std::nullopt;
  }
  [[nodiscard]] LeaseTerm lease_from(Instant sent_at, Millis ttl) const
  {
    return {.from = sent_at - m_server->m_earlier, .length = ttl - m_server->m_less};
  }
  [[nodiscard]] bool holds(const Owner& owner) const { return m_server->m_holder == owner.text(); }
  [[nodiscard]] NotHeld loss() const
  {
    return m_server->m_holder ? NotHeld{.cause = LossCause::held, .detail = *m_server->m_holder} : NotHeld{};
  }

  template <typename T, typename Act>
  Result<T> answer(const std::string& what, const Owner& owner, const CallLimits& limit, Act act)
  {
    while (m_server->m_after != nullptr && m_server->m_after->asked().empty() && m_clock.now() < limit.deadline) {
      m_clock.sleep_until(m_clock.now() + Millis{1}, limit.stop);
    }
    std::unique_lock lock(m_server->m_mutex);
    if (m_server->m_held_back > Millis{0}) {
      m_clock.sleep_until(m_clock.now() + m_server->m_held_back, StopToken::never());
    }
    m_server->m_asked.push_back(what + " " + owner.text());
    const auto mood = m_server->m_mood;
    if (mood == FakeServer::Behavior::down || what == m_server->m_refused) {
      return Error{ErrorCode::unreachable, "connection refused"};
    }
    if (mood == FakeServer::Behavior::fine) {
      return act();
    }
    if (mood == FakeServer::Behavior::late) {
      [[maybe_unused]] const auto unheard = act();
    }
    lock.unlock();
    m_clock.sleep_until(limit.deadline, limit.stop);
    return Error{ErrorCode::unreachable, "no answer"};
  }

  std::shared_ptr<FakeServer> m_server;
  const Clock& m_clock;
};

std::unique_ptr<LockStore> store_on(std::shared_ptr<FakeServer> server, const Clock& clock)
{
  return std::make_unique<FakeStore>(std::move(server), clock);
}

}  // namespace rlock::test
