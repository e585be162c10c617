// SPDX-License-Identifier: Apache-2.0
// Takes and releases a trial lock as `run` does, to see whether this user can hold locks on this server.
#pragma once

#include "doctor/facts.h"
#include "lock/names.h"
#include "lock/store.h"
#include "redis/transport.h"

namespace rlock {

// A random name for a lock. `prefix`: the prefix of the names that this user may take.
Result<LockName> random_lock_name(std::string_view prefix, std::string_view purpose, Rng& rng);

// Takes a trial lock, sees that another owner is refused, and renews and releases the lock. Leaves nothing on the server, also
// after an Error, unless the server can no longer be reached. An Error says which step failed. `timeout` bounds each request.
Result<Probe> probe_lock(LockStore& store, const LockName& name, Millis ttl, Millis timeout, const Clock& clock,
                         Rng& rng);
// What is to be said of a ttl that is below the shortest lease of a store which ends a hold with its client; nullopt: it is not. Leaves
// nothing there, as probe_lock.
std::optional<Finding> check_lease(LockStore& store, const LockName& name, Millis ttl, Millis timeout,
                                   const Clock& clock, Rng& rng);
// The same as probe_lock on a Redis server.
Result<Probe> probe_lock(Transport& transport, const LockName& name, Millis ttl, Millis timeout, const Clock& clock,
                         Rng& rng);

// A Transport that uses another Transport, which must outlive it.
class BorrowedTransport final : public Transport {
 public:
  explicit BorrowedTransport(Transport& owner) : m_owner(owner) {}
  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override
  {
    return m_owner.call(route_key, argv, limit);
  }
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override
  {
    return m_owner.follow_up(route_key, argv, limit);
  }
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) override
  {
    return m_owner.call_each(requests, limit);
  }
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override
  {
    return m_owner.subscribe(channels, limit);
  }
  Result<std::vector<std::string>> routes(const CallLimits& limit) override { return m_owner.routes(limit); }
  [[nodiscard]] bool is_cluster() const override { return m_owner.is_cluster(); }
  void drop_connection() override { m_owner.drop_connection(); }

 private:
  Transport& m_owner;
};

}  // namespace rlock
