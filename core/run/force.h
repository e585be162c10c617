// SPDX-License-Identifier: Apache-2.0
// `rlock force-unlock`: asks the holder to release, gives it time, and then ends the lock.
//
// A holder that answers that it is stopping its job is waited for. A holder that is silent for the grace is stopped,
// cut off or dead, and its job may still run. When the holder is rlock the server refuses its renewals, so that the
// lock ends with its ttl and the job is dead before. The renewals of a foreign client cannot be refused, so its lock is
// removed at once.
#pragma once

#include "lock/force_unlock.h"
#include "lock/store.h"

#include <functional>
#include <optional>
#include <string>
#include <variant>

namespace rlock {

struct ForceUnlockRequest {
  LockName name;
  Mode mode;
  Owner owner;     // the holder that the operator saw; a lock of another owner is not touched
  std::string by;  // the operator, for the holder and the event log: "alice@web1 (pid 71)"
  Millis grace;    // how long the holder may be silent; zero: the lock is removed at once
  Millis server_timeout;
  std::function<void(const ForceHeld&)> revoked;  // called once, when renewals are refused; may be empty
};

// The holder stopped its job and released the lock.
struct ReleasedByHolder {
  Holder holder;
};
// The holder did not answer, and its lease ended.
struct ForceExpired {
  Holder holder;
};
// The lock was removed.
struct Broken {
  Holder holder;
  bool job_was_over = false;
};
using ForceEnd = std::variant<ReleasedByHolder, ForceExpired, Broken, ForceFree, ForceChanged>;

// Used from one thread. `store` must offer ForceUnlock. Errors: those of the store; ErrorCode::interrupted when `stop` is readable.
Result<ForceEnd> force_unlock(LockStore& store, const ForceUnlockRequest& request, const Clock& clock, StopToken stop);

}  // namespace rlock
