// SPDX-License-Identifier: Apache-2.0
// What happens in one simulation, made from a seed: the clients, and the faults with their times. Plain values, so that parts
// can be left out (shrink.h).
#pragma once

#include "base/clock.h"
#include "lock/lock_kind.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rlock::sim {

// One machine that runs `rlock run` several times, one after the other.
struct ClientPlan {
  int number;
  LockKind kind;
  double clock_rate;  // of the machine; within 1 %
  int runs;
  Millis starts;  // its first run
  Millis pause;   // between two runs
  Millis job_lasts;
  bool ignores_term;
  std::optional<Millis> wait;
  bool automatic;            // renewed; else a fixed lease
  Millis min_hold;           // --min-hold
  bool nests;                // its job runs rlock for the same lock
  bool latest = false;       // --latest
  int priority = 0;          // --priority
  unsigned max_waiting = 0;  // --max-waiting; 0: not given
  bool cancels = false;      // --cancel-in-progress
  bool freezes = false;      // its leases wait before all others, as those of rlock freeze
  Millis wall_ahead{0};      // how wrong the clock of the machine is, where the store has none
};

enum class FaultKind {
  stop_runner,  // SIGSTOP, and CONT later
  stop_guardian,
  stop_both,
  kill_runner,
  kill_guardian,
  kill_both,
  cut_off,        // what is sent arrives when the time is over
  lose_requests,  // what is sent is lost, and its connection with it
  lose_answers,
  slow_down,       // each message takes up to `amount` longer
  reset,           // the client's connections end
  restart_server,  // with its data
  lose_all_data,   // by a restart without its data
  fail_over,       // to a replica that lacks the writes of the last `amount`
  step_clock,      // the server's, by `amount`
  delete_lock,     // by another program
  forget_scripts,
  force,  // an operator forces the client's lock, with a grace of `lasts`
  // of a store with sessions
  cut_off_member,
  stop_leader,      // another one is elected, of which it learns `amount` after it goes on
  step_wall_clock,  // of a client's machine, by `amount`
};

enum class StoreKind {
  redis,     // a Redis server runs the scripts
  records,   // the clients run the scripts on the record of a store
  sessions,  // the same, and holds end with the sessions of their owners, which three servers keep
};

struct Fault {
  FaultKind kind;
  int client;  // -1: the server
  Millis at;
  Millis lasts;
  Millis amount;
};

struct Schedule {
  std::uint64_t seed;
  Millis ttl;
  Millis server_timeout;
  Millis latency;  // of a message, mostly at most
  std::vector<ClientPlan> clients;
  std::vector<Fault> faults;
  StoreKind store = StoreKind::redis;
  bool stops_only_waiters = false;  // no fault ends or delays a release
};

Schedule schedule_of(std::uint64_t seed, StoreKind store = StoreKind::redis);

[[nodiscard]] bool loses_data(FaultKind kind);  // or ends leases early: two holders may overlap for a moment
[[nodiscard]] Millis end_of(const Fault& fault);
[[nodiscard]] Millis calm_from(const Schedule& schedule);         // the end of the last fault
[[nodiscard]] Millis time_of_messages(const Schedule& schedule);  // that a few requests and their messages take at most

std::string show(const Fault& fault);
std::string show(const Schedule& schedule);

}  // namespace rlock::sim
