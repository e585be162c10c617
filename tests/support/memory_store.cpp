// SPDX-License-Identifier: Apache-2.0
#include "support/memory_store.h"

#include "lock/abilities.h"
#include "support/memory_server.h"

#include <algorithm>

#include <fnmatch.h>

namespace rlock::test {
namespace {

class MemoryStore final : public LockStore, public ForceUnlock, public LockListing {
 public:
  MemoryStore(MemoryServer& server, HoldsEnd holds_end, const Clock& clock)
      : m_server(server), m_has_sessions(holds_end == HoldsEnd::with_session), m_clock(clock)
  {
  }

  Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& options,
                          const CallLimits&) override
  {
    const std::lock_guard guard(m_server.mutex);
    LockRecord& lock = current(spec.name);
    HolderRecord* holder = find(lock, owner);
    if (holder == nullptr && (!has_room(lock, spec.kind) || is_behind_another(lock, owner))) {
      return Attempt{refuse(lock, spec, owner, options)};
    }
    std::erase_if(lock.queue, [&](const WaiterRecord& waiter) { return waiter.owner == owner; });
    if (holder == nullptr) {
      ++lock.fence;
      holder = &lock.holders.emplace_back(HolderRecord{
          .owner = owner, .holds = {}, .info = spec.who, .kind = spec.kind, .ends = {}, .granted_at = m_clock.now()});
    }
    return Attempt{grant(lock, *holder, owner.text(), spec.ttl)};
  }

  Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits&) override
  {
    const std::lock_guard guard(m_server.mutex);
    LockRecord& lock = current(spec.name);
    HolderRecord* const holder = find(lock, hold.owner);
    return holder != nullptr ? ReentryResult{grant(lock, *holder, hold.id, spec.ttl)} : ReentryResult{not_held(lock)};
  }

  Result<bool> is_queued(const LockSpec& spec, const Owner& owner, const CallLimits&) override
  {
    const std::lock_guard guard(m_server.mutex);
    const auto& queue = current(spec.name).queue;
    return std::any_of(queue.begin(), queue.end(), [&](const WaiterRecord& each) { return each.owner == owner; });
  }

  Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                        const CallLimits& limit) override
  {
    return renew_hold(spec, Hold(owner), options, limit);
  }

  Result<Renewal> renew_hold(const LockSpec& spec, const Hold& hold, const RenewOptions& options,
                             const CallLimits&) override
  {
    const std::lock_guard guard(m_server.mutex);
    LockRecord& lock = current(spec.name);
    HolderRecord* const holder = find(lock, hold.owner);
    if (holder == nullptr || !holder->holds.contains(hold.id) || holder->revoked) {
      return Renewal{not_held(lock)};
    }
    std::optional<LeaseTerm> lease;
    if (!options.only_checks) {
      lease = lengthen(*holder, spec.ttl);
    }
    return Renewal{Renewed{.lease = lease, .forced = holder->wanted}};
  }

  Result<Release> release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& options,
                          const CallLimits&) override
  {
    const std::lock_guard guard(m_server.mutex);
    LockRecord& lock = current(spec.name);
    HolderRecord* const holder = find(lock, hold.owner);
    if (holder == nullptr || holder->holds.erase(hold.id) == 0) {
      const auto left = std::erase_if(lock.queue, [&](const WaiterRecord& each) { return each.owner == hold.owner; });
      return left > 0 ? Release{Dequeued{}} : Release{not_held(lock)};
    }
    if (!holder->holds.empty()) {
      return Release{StillHeld{static_cast<std::int64_t>(holder->holds.size())}};
    }
    if (m_has_sessions || options.keep == Millis{0}) {
      std::erase_if(lock.holders, [&](const HolderRecord& each) { return each.owner == hold.owner; });
    } else {
      holder->ends = std::min(holder->ends, m_clock.now() + options.keep);
    }
    announce(spec.name, lock);
    return Release{Released{}};
  }

  Result<LockState> inspect(const LockName& name, const CallLimits&) override
  {
    const std::lock_guard guard(m_server.mutex);
    return state_of(name, current(name));
  }

  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                           const CallLimits&) override
  {
    return std::unique_ptr<Listener>(std::make_unique<MemoryListener>(m_server, specs, owner));
  }
  void drop_connection() override {}
  [[nodiscard]] Traits traits() const override
  {
    return {.keeps_after_release = !m_has_sessions, .has_token_leases = !m_has_sessions};
  }

  ForceUnlock* force_unlock() override { return this; }
  LockListing* listing() override { return this; }

  Result<std::vector<LockState>> list(std::string_view pattern, const PerAnswer&) override
  {
    const std::lock_guard guard(m_server.mutex);
    std::vector<LockState> states;
    for (auto& [text, lock] : m_server.locks) {
      end_expired(lock);
      if (!lock.holders.empty() && ::fnmatch(std::string(pattern).c_str(), text.c_str(), 0) == 0) {
        states.push_back(state_of(*LockName::parse(text), lock));
      }
    }
    return states;
  }

  Result<std::vector<LockState>> list_held(std::span<const LockName> names, const PerAnswer& limits) override
  {
    auto states = list("*", limits);
    std::erase_if(*states, [&](const LockState& state) {
      return std::find(names.begin(), names.end(), state.name) == names.end();
    });
    return states;
  }

  Result<std::vector<LockState>> states_of(std::span<const LockName> names, const PerAnswer&) override
  {
    const std::lock_guard guard(m_server.mutex);
    std::vector<LockState> states;
    for (const LockName& name : names) {
      states.push_back(state_of(name, current(name)));
    }
    return states;
  }

  Result<std::vector<LockName>> find_known(std::string_view pattern, const PerAnswer& limits) override
  {
    const auto states = list(pattern, limits);
    std::vector<LockName> names;
    names.reserve(states->size());
    for (const LockState& state : *states) {
      names.push_back(state.name);
    }
    return names;
  }

  Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits&) override
  {
    const std::lock_guard guard(m_server.mutex);
    LockRecord& lock = current(call.name);
    HolderRecord* const record = find(lock, call.owner);
    if (record == nullptr) {
      return lock.holders.empty() ? ForceAnswer{ForceFree{}} : ForceAnswer{ForceChanged{shown(lock.holders.front())}};
    }
    const Holder holder = shown(*record);
    const bool job_was_over = record->holds.empty();
    if (step == ForceStep::take || job_was_over) {
      std::erase_if(lock.holders, [&](const HolderRecord& each) { return each.owner == call.owner; });
      announce(call.name, lock);
      return ForceAnswer{ForceBroken{.holder = holder, .job_was_over = job_was_over}};
    }
    if (step != ForceStep::look) {
      record->wanted = ForceRequest{call.by};
      record->revoked = record->revoked || step == ForceStep::revoke;
      tell_all(call.name.text(), call.owner);
    }
    return ForceAnswer{ForceHeld{.holder = holder, .lasts = time_left(*record), .is_rlock = true}};
  }

 private:
  // Of a waiter that has not subscribed yet.
  static constexpr Millis new_waiter_time{250};

  // The mutex is held in all that follows.
  LockRecord& current(const LockName& name)
  {
    LockRecord& lock = m_server.locks[name.text()];
    end_expired(lock);
    return lock;
  }

  void end_expired(LockRecord& lock) const
  {
    std::erase_if(lock.holders, [this, now = m_clock.now()](const HolderRecord& each) { return end_of(each) <= now; });
  }

  // A session gets three quarters of what was asked for, from an earlier moment. All holds of an owner end with its session.
  LeaseTerm lengthen(HolderRecord& holder, Millis ttl) const
  {
    const Instant now = m_clock.now();
    const LeaseTerm lease = m_has_sessions ? LeaseTerm{.from = now - ttl / 20, .length = ttl * 3 / 4}
                                           : LeaseTerm{.from = now, .length = ttl};
    Instant& ends = m_has_sessions ? m_server.sessions[holder.owner.text()] : holder.ends;
    ends = std::max(ends, lease.from + lease.length);
    return lease;
  }

  [[nodiscard]] Instant end_of(const HolderRecord& holder) const
  {
    return m_has_sessions ? m_server.sessions[holder.owner.text()] : holder.ends;
  }

  static HolderRecord* find(LockRecord& lock, const Owner& owner)
  {
    const auto found = std::find_if(lock.holders.begin(), lock.holders.end(),
                                    [&](const HolderRecord& each) { return each.owner == owner; });
    return found != lock.holders.end() ? &*found : nullptr;
  }

  static bool has_room(const LockRecord& lock, const LockKind& kind)
  {
    const auto* permits = std::get_if<Permits>(&kind);
    const bool all_alike = std::all_of(lock.holders.begin(), lock.holders.end(), [&](const HolderRecord& each) {
      return kind_of(kind).is_shared && each.kind.index() == kind.index();
    });
    return all_alike && (permits == nullptr || lock.holders.size() < permits->limit);
  }

  [[nodiscard]] bool is_alive(const WaiterRecord& waiter) const
  {
    return m_clock.now() < waiter.asked_at + new_waiter_time ||
           std::any_of(m_server.listeners.begin(), m_server.listeners.end(),
                       [&](const MemoryListener* each) { return each->owner() == waiter.owner; });
  }

  bool is_behind_another(LockRecord& lock, const Owner& owner) const
  {
    std::erase_if(lock.queue, [&](const WaiterRecord& each) { return !is_alive(each) && each.owner != owner; });
    return !lock.queue.empty() && lock.queue.front().owner != owner;
  }

  Granted grant(LockRecord& lock, HolderRecord& holder, const std::string& hold, Millis ttl) const
  {
    const LeaseTerm lease = lengthen(holder, ttl);
    holder.holds.insert(hold);
    return {.fence = lock.fence, .count = static_cast<std::int64_t>(holder.holds.size()), .lease = lease};
  }

  Busy refuse(LockRecord& lock, const LockSpec& spec, const Owner& owner, const AcquireOptions& options) const
  {
    auto waiter = std::find_if(lock.queue.begin(), lock.queue.end(),
                               [&](const WaiterRecord& each) { return each.owner == owner; });
    if (waiter != lock.queue.end()) {
      waiter->asked_at = m_clock.now();
    } else if (options.queues) {
      waiter = lock.queue.insert(lock.queue.end(), {.owner = owner, .info = spec.who, .asked_at = m_clock.now()});
    }
    const auto place = static_cast<std::uint64_t>(waiter - lock.queue.begin());
    const bool queued = waiter != lock.queue.end();
    const bool held = !lock.holders.empty();
    return {.ttl = held ? time_left(lock.holders.front()) : new_waiter_time,
            .holder = held ? std::optional{shown(lock.holders.front())} : std::nullopt,
            .waiters_ahead = place,
            .ticket = queued ? place + 1 : 0};
  }

  NotHeld not_held(const LockRecord& lock) const
  {
    return lock.holders.empty() ? NotHeld{}
                                : NotHeld{.cause = LossCause::held, .detail = describe(shown(lock.holders.front()))};
  }

  [[nodiscard]] Millis time_left(const HolderRecord& holder) const
  {
    return std::chrono::ceil<Millis>(end_of(holder) - m_clock.now());
  }

  static Holder shown(const HolderRecord& record)
  {
    return {.owner = record.owner,
            .count = static_cast<std::int64_t>(record.holds.size()),
            .info = record.info,
            .revoked = record.revoked};
  }

  LockState state_of(const LockName& name, const LockRecord& lock) const
  {
    LockState state{.name = name, .kind = Plain{}, .ttl = Millis{0}, .fence = lock.fence, .holders = {}, .waiting = {}};
    for (const HolderRecord& holder : lock.holders) {
      state.kind = holder.kind;
      state.ttl = std::max(*state.ttl, time_left(holder));
      state.holders.push_back(shown(holder));
      state.holders.back().age = std::chrono::floor<Millis>(m_clock.now() - holder.granted_at);
    }
    for (const WaiterRecord& waiter : lock.queue) {
      if (is_alive(waiter)) {
        state.waiting.push_back({.owner = waiter.owner, .info = waiter.info});
      }
    }
    state.count = state.holders.size();
    return state;
  }

  void announce(const LockName& name, const LockRecord& lock) const
  {
    if (!lock.queue.empty()) {
      tell_all(name.text(), lock.queue.front().owner);
    }
    tell_all(name.text(), std::nullopt);
  }
  void tell_all(const std::string& name, const std::optional<Owner>& to) const
  {
    for (MemoryListener* const listener : m_server.listeners) {
      listener->tell(name, to);
    }
  }

  MemoryServer& m_server;
  const bool m_has_sessions;
  const Clock& m_clock;
};

constexpr std::string_view memory_scheme = "memory";
constexpr std::string_view memory_session_scheme = "memory-sessions";

Result<Endpoint> parse_memory(std::string_view url)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::other;
  endpoint.scheme = url.substr(0, url.find(':'));
  endpoint.path = url.substr(endpoint.scheme.size() + 1);
  return endpoint;
}

Result<std::unique_ptr<LockStore>> open_memory(const ServerSpec&, const Endpoint& endpoint, const Clock& clock,
                                               StopToken)
{
  return memory_store(endpoint.path, clock,
                      endpoint.scheme == memory_session_scheme ? HoldsEnd::with_session : HoldsEnd::with_ttl);
}

}  // namespace

void add_memory_engine()
{
  static const bool once = [] {
    for (const std::string_view each : {memory_scheme, memory_session_scheme}) {
      add_engine({.name = each, .parse = parse_memory, .open = open_memory});
    }
    return true;
  }();
  static_cast<void>(once);
}

std::unique_ptr<LockStore> memory_store(const std::string& name, const Clock& clock, HoldsEnd holds_end)
{
  return std::make_unique<MemoryStore>(memory_server_called(name), holds_end, clock);
}

}  // namespace rlock::test
