// SPDX-License-Identifier: Apache-2.0
// Keeps the locks that are ours already while another one is waited for, and sees to it that all of them are ours when the
// job begins.
#pragma once

#include "run/lock_session.h"

#include <optional>
#include <string>
#include <vector>

namespace rlock {

// Used from the main thread. What it is given must outlive it.
class Vigil {
 public:
  Vigil(const RunRequest& request, const RunContext& context);

  // Readable: a signal came, or a lock was lost.
  [[nodiscard]] StopToken stop() const { return m_wakers ? m_wakers->any.token() : m_context.signals.stop(); }

  void add(LockSession& session);                      // it has just been taken
  [[nodiscard]] Instant due() const { return m_due; }  // when watch() is to be called
  void watch();                                        // all that is not watched yet
  void rest();                                         // no thread of ours runs until the next watch()

  // Which lock was lost, and why, in words; nullopt: none, as far as is known.
  [[nodiscard]] std::optional<std::string> loss();

  // Ends the watch. Afterwards every lease is young enough for a job to begin, or there is a loss. ErrorCode::unfit: the
  // server is too slow for such leases.
  Result<Done> settle();

 private:
  struct Wakers {
    AnyStop any;
    StopSource lost;  // for what is found out while nobody watches
  };

  void begin(LockSession& session);
  void refresh(LockSession& session);

  const RunRequest& m_request;
  const RunContext& m_context;
  std::optional<Wakers> m_wakers;  // where there is more than one lock
  std::vector<LockSession*> m_held;
  Instant m_due = far_future;
};

}  // namespace rlock
