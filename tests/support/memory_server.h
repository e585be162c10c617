// SPDX-License-Identifier: Apache-2.0
// The data of a memory server and the listeners of its clients. Private to memory_store.cpp.
#pragma once

#include "base/fd.h"
#include "lock/abilities.h"
#include "lock/requests.h"
#include "lock/store.h"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace rlock::test {

class MemoryListener;

struct HolderRecord {
  Owner owner;
  std::set<std::string> holds;  // Hold::id; empty: only ReleaseOptions::keep keeps the lock
  HolderInfo info;
  LockKind kind;
  Instant ends;
  Instant granted_at;
  std::optional<ForceRequest> wanted = {};
  bool revoked = false;
};

struct WaiterRecord {
  Owner owner;
  HolderInfo info;
  Instant asked_at;
};

struct LockRecord {
  std::vector<HolderRecord> holders;
  std::vector<WaiterRecord> queue;
  std::uint64_t fence = 0;
};

struct MemoryServer {
  std::mutex mutex;  // guards the other members
  std::map<std::string, LockRecord> locks;
  std::map<std::string, Instant>
      sessions;  // when each owner's ends, unless it is kept alive; where holds have sessions
  std::vector<MemoryListener*> listeners;
};

// The server of that name. It lives as long as the process.
MemoryServer& memory_server_called(const std::string& name);

// Thread-safe, except tell().
class MemoryListener final : public Listener {
 public:
  MemoryListener(MemoryServer& server, std::span<const LockSpec> specs, Owner owner);
  ~MemoryListener() override;
  MemoryListener(const MemoryListener&) = delete;
  MemoryListener& operator=(const MemoryListener&) = delete;

  [[nodiscard]] int fd() const override { return m_event.get(); }
  Result<Hints> heard(const Clock& clock) override;
  Result<Done> hear_releases(std::size_t which, const CallLimits& limit) override;
  Result<Done> hear_as_holder(std::span<const Owner>, const CallLimits&) override { return Done{}; }

  // Sends a message; the caller holds the server's mutex. `to`: the only owner that gets it; nullopt: the subscribers to
  // releases.
  void tell(const std::string& name, const std::optional<Owner>& to);
  [[nodiscard]] const Owner& owner() const { return m_owner; }

 private:
  struct Heard {
    std::string name;
    Hint hint;
    bool hears_releases = false;
  };
  MemoryServer& m_server;
  const Owner m_owner;
  const Fd m_event;
  std::vector<Heard> m_locks;
};

}  // namespace rlock::test
