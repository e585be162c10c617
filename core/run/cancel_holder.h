// SPDX-License-Identifier: Apache-2.0
// Stops each holder that is in the way of a waiter (run --cancel-in-progress), as force-unlock does: the holder's job is dead
// before the lock is handed over.
//
// A holder that another client has asked already is not asked in a second name. A request that fails is repeated after a
// while. A key that is not provably a lock is left alone: its value may be the data of another program.
#pragma once

#include "base/log.h"
#include "lock/waiting.h"
#include "run/force.h"

#include <optional>
#include <string>

namespace rlock {

// Used from the waiting thread. `store`, `spec`, `clock` and `log` must outlive it. `store` must offer ForceUnlock.
class CancelHolder final : public HolderStopper {
 public:
  CancelHolder(LockStore& store, const LockSpec& spec, Millis server_timeout, const Clock& clock, const Log& log);

  void in_the_way(const Busy& busy) override;
  [[nodiscard]] Instant due() const override;
  bool step(StopToken stop) override;

 private:
  bool begin(StopToken stop);
  void ask(const Holder& holder, const Mode& mode);
  void tell_revoked(const ForceHeld& held, bool listens) const;
  void tell(const ForceEnd& end) const;
  void failed(const Error& error);
  void give_up(const Error& error);

  LockStore& m_store;
  const LockSpec& m_spec;
  const Millis m_server_timeout;
  const Clock& m_clock;
  const Log& m_log;
  const std::string m_lock;                // its name for messages
  std::optional<Owner> m_holder;           // the last one that was in the way
  Instant m_begin_at = far_future;         // when to look at that holder
  std::optional<ForcedRelease> m_release;  // while a holder is being stopped
};

}  // namespace rlock
