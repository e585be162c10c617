// SPDX-License-Identifier: Apache-2.0
// What the simulated server knows of the lock, for the rules. All clients use one lock.
#pragma once

#include "lock/lock_kind.h"
#include "sim/schedule.h"
#include "sim/server.h"

#include <map>
#include <optional>
#include <string>

namespace rlock::sim {

class LockState {
 public:
  // Both must outlive it.
  LockState(const Schedule& schedule, Server& server);

  // Two kinds under one name, each with a queue of its own.
  [[nodiscard]] bool is_mixed() const { return m_is_mixed; }
  [[nodiscard]] std::int64_t now_us() { return m_server.redis().time(); }

  [[nodiscard]] bool is_held(const LockKind& kind, const std::string& owner);
  // For how long the server keeps the hold. nullopt: it has no end, or there is none.
  [[nodiscard]] std::optional<Nanos> hold_lasts_for(const LockKind& kind, const std::string& owner);
  [[nodiscard]] std::string exclusive_holder();           // empty: there is none, or the lock is shared
  [[nodiscard]] std::map<std::string, double> queue();    // waiters and their tickets
  [[nodiscard]] int latest_waiters();                     // those in the queue that wait with --latest
  [[nodiscard]] std::map<std::string, int> priorities();  // of waiters, where it is not 0
  [[nodiscard]] bool listens(const std::string& waiter);
  [[nodiscard]] std::optional<std::string> key_without_ttl();

 private:
  [[nodiscard]] const LockKind& first_mode() const { return m_schedule.clients.front().kind; }
  [[nodiscard]] bool is_written(const LockKind& kind, const std::string& owner);
  // When the hold ends by the server's clock, in milliseconds. nullopt: it has no end, or there is none.
  [[nodiscard]] std::optional<std::int64_t> hold_ends(const LockKind& kind, const std::string& owner);
  [[nodiscard]] std::optional<std::int64_t> key_ends(const std::string& key);

  const Schedule& m_schedule;
  Server& m_server;
  const bool m_is_mixed;
};

}  // namespace rlock::sim
