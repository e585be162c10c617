// SPDX-License-Identifier: Apache-2.0
// A second client that reaches the servers without faults. It looks at the truth: who holds the lock, which keys have no
// ttl. And it tries to get the lock at every moment at which another client thinks that it holds it.
#pragma once

#include "fault/claims.h"
#include "fault/client.h"
#include "redis/connection.h"
#include "support/redis_fixture.h"
#include "support/relay.h"

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace rlock::test {

// Thread-safe.
class Rival {
 public:
  Rival(const std::vector<std::unique_ptr<RedisServer>>& servers, std::vector<std::string> keys, LockKind kind,
        Millis ttl, Claims& claims);

  // Tries once for the first lock, and gives it back at once. Does nothing while no client thinks that it holds a lock.
  void try_to_overlap();
  // The same in any case. `while_held` is called while it has the lock. True: it had it.
  bool try_once(const std::function<void()>& while_held);
  // Tries until each lock has been granted. False: not within the time for which a client that is gone may block it.
  bool gets_all();

  bool sees_holder(const Owner& owner);  // of all the locks

  std::size_t waiters();  // of the first lock
  bool sees_waiter(const std::string& label);

  // Notes keys that have no ttl, and locks whose ttl is too long.
  void look_at_keys();
  [[nodiscard]] std::vector<std::string> bad_keys() const;

  [[nodiscard]] KeysSeen keys_on(std::size_t server);

 private:
  bool try_for(const std::string& key, const std::function<void()>& while_held);
  Reply ask_server(std::size_t server, const std::vector<std::string_view>& words);
  [[nodiscard]] LockSpec spec_of(const std::string& key) const;
  [[nodiscard]] CallLimits soon() const;

  const std::vector<std::string> m_keys;
  const LockKind m_mode;
  const Millis m_ttl;
  Claims& m_claims;
  const BootClock m_clock;
  mutable std::mutex m_mutex;
  SystemRng m_rng;                     // guarded by m_mutex
  std::unique_ptr<LockStore> m_store;  // guarded by m_mutex
  std::vector<Connection> m_servers;   // guarded by m_mutex
  std::set<std::string> m_bad_keys;    // guarded by m_mutex
};

}  // namespace rlock::test
