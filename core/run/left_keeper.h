// SPDX-License-Identifier: Apache-2.0
// What the keepers share, the processes that rlock leaves behind to keep a lock (run/keeper.h, Compatibility::flock), and the keeper of
// leases that the store does not keep.
#pragma once

#include <string>
#include "base/result.h"
#include "lock/store.h"

namespace rlock {

// Detaches a process that was just forked from its caller, and names it.
void detach_as_keeper();

// The system refused what a keeper needs, by errno.
Error no_keeper(const char* what);

// Leaves a process that keeps the leases which the store does not keep by itself until they are over
// (LockStore::keep_leases), if there are any. It ends when they are over or released. ErrorCode::os: it could not be started.
// Threads: call this while the process has one thread.
Result<Done> leave_keeper_of_leases(LockStore& store, const LockName& lock);
// What people are told of it. `lasts`: LockStore::lasts_without_keeper.
std::string kept_by_keeper(const LockName& lock, Millis lasts);

// Logs an error of a keeper, which has no stderr, by syslog(3). Ignores an empty line. May wait for the syslog daemon, so call
// this when the locks are released.
void write_to_syslog(const std::string& line);

}  // namespace rlock
