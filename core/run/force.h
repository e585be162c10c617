// SPDX-License-Identifier: Apache-2.0
// What `rlock force-unlock` does: tell the holder, give it time, then see to it that the lock ends.
//
// A holder that says that it stops its job is waited for. One that is silent for the grace is stopped, cut off or dead, and
// its job may still run: an rlock is refused further renewals, so that the lock ends with its ttl, before which the job is
// dead. The renewals of a foreign client cannot be refused: its lock is taken away.
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
  Owner owner;     // who is meant: the holder that the operator saw
  std::string by;  // who wants it, for the holder and the record: "alice@web1 (pid 71)"
  Millis grace;    // how long the holder may be silent; zero: the lock is taken away at once
  Millis server_timeout;
  std::function<void(const ForceHeld&)> revoked;  // called once, when renewals are refused; may be empty
};

struct ReleasedByHolder {
  Holder holder;
};  // the holder stopped its job and released
struct ForceExpired {
  Holder holder;
};               // it did not answer, and its lease is over
struct Broken {  // the lock was taken away
  Holder holder;
  bool job_was_over = false;
};
using ForceEnd = std::variant<ReleasedByHolder, ForceExpired, Broken, ForceFree, ForceChanged>;

// `store` must offer ForceUnlock.
Result<ForceEnd> force_unlock(LockStore& store, const ForceUnlockRequest& order, const Clock& clock, StopToken stop);

}  // namespace rlock
