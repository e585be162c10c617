// SPDX-License-Identifier: Apache-2.0
// The ability of an engine whose store keeps nothing for long for a client that is gone (the sessions of ZooKeeper). A fixed lease, or
// what --min-hold keeps after a release, may be longer. Then a process must keep it (run/keeper.h).
#pragma once

#include <optional>
#include "base/defaults.h"
#include "lock/store.h"

namespace rlock {

class LeaseKeeping {
 public:
  virtual ~LeaseKeeping() = default;
  // How long the leases that this client was given, and that need a process, last when that process dies. nullopt: none needs one.
  [[nodiscard]] virtual std::optional<Millis> lasts_without_keeper() const = 0;
  // Keeps these leases until each of them is over or released. False: one ended earlier. To be called in a fork, in which no connection
  // of the store is open, and which calls nothing else of the store.
  virtual bool keep_leases() = 0;
};

// LeaseKeeping::lasts_without_keeper.
inline std::optional<Millis> lasts_without_keeper(LockStore& store)
{
  const LeaseKeeping* const keeping = store.lease_keeping();
  return keeping != nullptr ? keeping->lasts_without_keeper() : std::nullopt;
}

}  // namespace rlock
