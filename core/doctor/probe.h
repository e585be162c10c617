// SPDX-License-Identifier: Apache-2.0
// A lock of our own, taken and let go as `run` does it, to see whether this server can hold locks for this user.
#pragma once

#include "doctor/facts.h"
#include "lock/names.h"
#include "server/transport.h"

namespace rlock {

// A name that nobody else has. `prefix` is where this user may take locks.
Result<LockName> name_of_our_own(std::string_view prefix, std::string_view purpose, Rng& rng);

// Leaves nothing behind, however it ends, unless the server cannot be reached any more. An Error says which step failed.
Result<Probe> try_a_lock(Transport& transport, const LockName& name, Millis ttl, Millis timeout, const Clock& clock,
                         Rng& rng);

// Deletes all that may be left of a lock that was ours alone.
Result<Done> sweep(Transport& transport, const LockName& name, const CallLimits& limit);

// A Transport that belongs to somebody else, who keeps it for longer.
class Borrowed final : public Transport {
 public:
  explicit Borrowed(Transport& owner) : m_owner(owner) {}
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
  void forget() override { m_owner.forget(); }

 private:
  Transport& m_owner;
};

}  // namespace rlock
