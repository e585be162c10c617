// SPDX-License-Identifier: Apache-2.0
// Stops each holder that is in the way of a waiter (run --cancel-in-progress), as force-unlock does: the holder's job is dead
// before the lock is handed over.
//
// If another client has asked the holder already, that request stands. A request that fails is repeated after a while. A key that
// is not provably a lock stays untouched, because its value may be the data of another program.
#pragma once

#include "base/log.h"
#include "lock/waiting.h"
#include "run/force.h"

#include <optional>
#include <string>

namespace rlock {

// Ownership: `store`, `spec`, `clock` and `log` must outlive the object. `store` must offer ForceUnlock. Threads: used from the
// waiting thread.
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
  const std::string m_lock;                // the name of the lock for messages
  std::optional<Owner> m_holder;           // the last holder that was in the way
  Instant m_begin_at = far_future;         // when to ask m_holder
  std::optional<ForcedRelease> m_release;  // nullopt: no holder is being stopped
};

}  // namespace rlock
