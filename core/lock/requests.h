// SPDX-License-Identifier: Apache-2.0
// The requests that a client sends about one lock, and the answers of a store. Plain values.
#pragma once

#include "lock/lock_state.h"
#include "lock/past_run.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace rlock {

// A grant counts only once `replicas` replicas have it; else the client gives the lock back. Renewals do not wait for
// replicas: a lost renewal shortens the lease, and does not lose the lock.
struct Sync {
  unsigned replicas = 0;
  Millis within{0};
};

struct LockSpec {
  LockName name;
  Mode mode;
  Millis ttl;
  HolderInfo who;
  std::optional<Millis> once;  // a success under this name within that time counts for every caller
  Sync sync = {};              // of one server, or of the one that took over for it
  bool again = false;          // with `once`: run even if a success is remembered
  bool confirms = false;       // renew: the first renewal of a lease that began with a Handover
  bool stopping = false;       // renew: the owner knows that the lock was requested from it, and is stopping its job
};

struct AcquireOptions {
  bool queues = false;       // join the queue if the lock is busy
  std::uint64_t ticket = 0;  // Busy::ticket of an earlier answer: restores the waiter's position if the queue was lost
};

// A request to release the lock. `by` is for people: "alice@web1 (pid 71)".
struct ForceRequest {
  std::string by;
};

struct Granted {
  std::uint64_t fence;  // grows with each new holder
  std::int64_t count;   // > 1 when nested
  bool agreed = false;  // several servers have agreed on `fence`
};
using ServerTime = std::chrono::microseconds;  // since 1970, by the server's clock

struct Replaced {
  std::optional<HolderInfo> by;  // for people; missing: unknown
};

struct Busy {
  std::optional<Millis> ttl;                      // until the lock, or the reservation, expires; missing: never
  std::optional<Holder> holder;                   // missing: the lock is free, but reserved for a moment
  std::uint64_t waiters_ahead = 0;                // in the queue
  std::uint64_t ticket = 0;                       // arrival in the queue; 0: the caller is not in the queue
  bool silent = false;                            // the holder does not announce its release: poll
  std::optional<Millis> again_in = std::nullopt;  // when to ask again, if the store knows better than the ttl
  std::optional<Millis> watch_in = std::nullopt;  // ask then at the latest, because a hand-over may not be taken
  std::string unfit =
      {};             // not empty: no client is in the way; the reason why the servers cannot grant before `again_in`
  bool tied = false;  // several servers, none holds a quorum: several clients got some each; with `again_in`
  // A newer waiter has taken the caller's place, and the caller has left the queue (HolderInfo::latest).
  std::optional<Replaced> replaced = std::nullopt;
  // Time of the answer, for a later Handover; missing: not queued, or another server may answer next.
  std::optional<ServerTime> at = std::nullopt;
};
struct AlreadyDone {
  Millis ago;
};  // LockSpec::once: a success is remembered; the caller holds nothing and is not queued
using Attempt = std::variant<Granted, Busy, AlreadyDone>;

struct Renewed {
  std::optional<ForceRequest> forced;           // another client wants the lock
  std::optional<ServerTime> at = std::nullopt;  // time of the renewal; missing: several servers
};
struct NotHeld {
  std::string what;                             // for people: "expired or deleted", "now held by …"
  std::optional<ForceRequest> forced;           // the request that took the lock away
  std::optional<ServerTime> at = std::nullopt;  // time of the answer; missing where it does not matter
  bool revoked = false;                         // by an operator: still held until the ttl ends, but not renewed
};
using Renewal = std::variant<Renewed, NotHeld>;
using ReentryResult = std::variant<Granted, AlreadyDone, NotHeld>;

struct Released {
  bool passed_on = false;  // handed over to a waiter
};
struct StillHeld {
  std::int64_t count;  // holds that are left
};
struct Dequeued {};  // the caller did not hold the lock, and has left the queue
using Release = std::variant<Released, StillHeld, Dequeued, NotHeld>;

struct ReleaseOptions {
  Millis keep{0};          // --min-hold: how long the lock stays taken after its last hold has ended
  bool succeeded = false;  // remember a success for LockSpec::once
  bool announced = true;   // false: take back an attempt, of which no other client needs to hear
  EndOfRun result = {};    // for the event log
};

}  // namespace rlock
