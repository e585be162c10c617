// SPDX-License-Identifier: Apache-2.0
#include "doctor/probe.h"

#include "base/duration.h"
#include "redis/redis_store.h"

#include <algorithm>

#include <unistd.h>

namespace rlock {
namespace {

// How long a trial lock stays on a server that no longer answers, unless the ttl is shorter: longer than a trial takes.
Millis longest_trial(Millis timeout) { return std::max<Millis>(2 * timeout, std::chrono::seconds{5}); }

Error unexpected(std::string what)
{
  return {ErrorCode::internal, std::move(what) + " (is a proxy between that changes answers?)"};
}

// The steps of a trial; each needs those before it.
class Trial {
 public:
  Trial(LockStore& store, LockSpec spec, Millis timeout, const Clock& clock, Rng& rng)
      : m_store(store),
        m_spec(std::move(spec)),
        m_timeout(timeout),
        m_clock(clock),
        m_owner(Owner::fresh(rng, ::getpid())),
        m_other(Owner::fresh(rng, ::getpid()))
  {
  }

  Result<Probe> run()
  {
    for (const auto step :
         {&Trial::take, &Trial::exclude, &Trial::send_message, &Trial::renew, &Trial::reject_other_owner}) {
      const Result<Done> done = (this->*step)();
      if (!done) {
        [[maybe_unused]] const auto released = m_store.release(m_spec, m_owner, {}, limit());
        return done.error();
      }
    }
    ASSIGN_OR_RETURN(const auto released, m_store.release(m_spec, m_owner, {}, limit()));
    return std::holds_alternative<Released>(released) ? Result(m_probe)
                                                      : unexpected("the trial lock was gone before its release");
  }

 private:
  Result<Done> take()
  {
    ASSIGN_OR_RETURN(const auto attempt, m_store.acquire(m_spec, m_owner, {}, limit()));
    return std::holds_alternative<Granted>(attempt) ? Result(Done{}) : unexpected("a free lock was not granted");
  }

  Result<Done> exclude()
  {
    ASSIGN_OR_RETURN(const auto attempt, m_store.acquire(m_spec, m_other, {}, limit()));
    return std::holds_alternative<Busy>(attempt) ? Result(Done{}) : unexpected("a lock was granted twice");
  }

  // Counts listeners before the owner listens: those clients listen to every owner.
  Result<Done> send_message()
  {
    ASSIGN_OR_RETURN(const auto before, count_listeners());
    ASSIGN_OR_RETURN(const auto listener, m_store.listen({&m_spec, 1}, m_owner, limit()));  // until it is counted
    ASSIGN_OR_RETURN(const auto after, count_listeners());
    m_probe = {.global_listeners = before, .heard = after > before};
    return Done{};
  }

  Result<std::int64_t> count_listeners()
  {
    const ForceCall call{
        .name = m_spec.name, .kind = m_spec.kind, .owner = m_owner, .by = "rlock doctor", .stands_for = Millis{1}};
    ASSIGN_OR_RETURN(const auto asked, m_store.force(ForceStep::ask, call, limit()));
    const auto* heard = std::get_if<ForceHeld>(&asked);
    return heard != nullptr ? Result(heard->listening) : unexpected("a lock that was just granted is gone");
  }

  Result<Done> renew()
  {
    ASSIGN_OR_RETURN(const auto renewal, m_store.renew(m_spec, m_owner, {}, limit()));
    return std::holds_alternative<Renewed>(renewal) ? Result(Done{})
                                                    : unexpected("the trial lock could not be renewed");
  }

  Result<Done> reject_other_owner()
  {
    ASSIGN_OR_RETURN(const auto release, m_store.release(m_spec, m_other, {}, limit()));
    return std::holds_alternative<NotHeld>(release) ? Result(Done{}) : unexpected("another owner could release a lock");
  }

  [[nodiscard]] CallLimits limit() const { return {m_clock.now() + m_timeout, StopToken::never()}; }

  LockStore& m_store;
  LockSpec m_spec;
  Millis m_timeout;
  const Clock& m_clock;
  Owner m_owner;
  Owner m_other;
  Probe m_probe;
};

}  // namespace

Result<LockName> random_lock_name(std::string_view prefix, std::string_view purpose, Rng& rng)
{
  return LockName::parse(std::string(prefix) + "rlock:" + std::string(purpose) + ":" + random_uuid(rng));
}

Result<Probe> probe_lock(LockStore& store, const LockName& name, Millis ttl, Millis timeout, const Clock& clock,
                         Rng& rng)
{
  const LockSpec spec{.name = name,
                      .kind = Plain{},
                      .ttl = std::min(ttl, longest_trial(timeout)),
                      .who = {.command = "rlock doctor"},
                      .once = {}};
  auto probe = Trial(store, spec, timeout, clock, rng).run();
  [[maybe_unused]] const auto erased = store.erase(name, {clock.now() + timeout, StopToken::never()});
  return probe;
}

std::optional<Finding> check_lease(LockStore& store, const LockName& name, Millis ttl, Millis timeout,
                                   const Clock& clock, Rng& rng)
{
  if (!store.traits().ends_holds_with_clients || ttl > longest_trial(timeout)) {
    return std::nullopt;
  }
  const LockSpec spec{
      .name = name, .kind = Plain{}, .ttl = ttl, .who = {.command = "rlock doctor", .automatic = true}, .once = {}};
  const Owner owner = Owner::fresh(rng, ::getpid());
  const auto limit = [&] { return CallLimits{clock.now() + timeout, StopToken::never()}; };
  const auto attempt = store.acquire(spec, owner, {}, limit());
  [[maybe_unused]] const auto released = store.release(spec, owner, {.result = {.outcome = Outcome::unused}}, limit());
  [[maybe_unused]] const auto erased = store.erase(name, limit());
  const auto* granted = attempt ? std::get_if<Granted>(&*attempt) : nullptr;
  const Millis lease = granted != nullptr ? granted->lease.length : ttl;
  if (lease <= ttl) {
    return std::nullopt;
  }
  return Finding{
      .check = "lease",
      .status = CheckStatus::warn,
      .found = "a lease of " + show(lease) + " where --ttl is " + show(ttl) + ": the shortest that the server gives",
      .advice = "give --ttl " + show(lease)};
}

Result<Probe> probe_lock(Transport& transport, const LockName& name, Millis ttl, Millis timeout, const Clock& clock,
                         Rng& rng)
{
  RedisStore store(std::make_unique<BorrowedTransport>(transport), clock);
  return probe_lock(store, name, ttl, timeout, clock, rng);
}

}  // namespace rlock
