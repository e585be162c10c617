// SPDX-License-Identifier: Apache-2.0
// What some engines offer and others do not. A LockStore returns a pointer to each ability, or nullptr; the object belongs
// to the store and follows the store's rules for threads, limits and errors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "lock/event_log.h"
#include "lock/past_run.h"
#include "lock/requests.h"

namespace rlock {

class ForceUnlock {
 public:
  virtual ~ForceUnlock() = default;
  // Carries out one step. Each step also deletes a hold that only --min-hold keeps. May be sent again.
  virtual Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) = 0;
};

// `rlock list`, `rlock watch`, completion of keys.
class LockListing {
 public:
  virtual ~LockListing() = default;
  // The locks that are held and whose name matches the glob, sorted by name.
  virtual Result<std::vector<LockState>> list(std::string_view pattern, const PerAnswer& limits) = 0;
  // The state of each of these locks that is held, in the order of `names`. Unlike list(), the cost does not depend on what else
  // the server stores.
  virtual Result<std::vector<LockState>> list_held(std::span<const LockName> names, const PerAnswer& limits) = 0;
  // The state of each of these locks, held or free, in the order of `names`. What is no lock is left out.
  virtual Result<std::vector<LockState>> states_of(std::span<const LockName> names, const PerAnswer& limits) = 0;
  // The locks that the server knows and whose name matches the glob, sorted: those that are held, those whose events or runs it
  // keeps, and those of whose success it knows for `rlock once`.
  virtual Result<std::vector<LockName>> find_known(std::string_view pattern, const PerAnswer& limits) = 0;
};

// `rlock events`.
class EventLog {
 public:
  virtual ~EventLog() = default;
  // The locks whose name matches the glob and which have an event log, sorted.
  virtual Result<std::vector<LockName>> find_logs(std::string_view pattern, const PerAnswer& limits) = 0;
  // For each query the entries after EventLogQuery::after, the oldest first.
  virtual Result<std::vector<std::vector<EventLogEntry>>> read_logs(std::span<const EventLogQuery> queries,
                                                                    const CallLimits& limit) = 0;
};

// `rlock history`, and the last run that `status` shows.
class RunHistory {
 public:
  virtual ~RunHistory() = default;
  // For each lock its runs that are over. A lock that cannot be inspected has no runs; if there is no other lock, its Error is
  // returned.
  virtual Result<std::vector<LockHistory>> past_runs(std::span<const LockName> names, LogPart part,
                                                     const PerAnswer& limits) = 0;
  // Copies the runs that are over from the event log, which forgets them by their number, to a list of runs that is kept for
  // `history` after the last copy. May be sent again: no run is read twice.
  virtual Result<Done> keep_runs(const LockName& name, Millis history, const PerAnswer& limits) = 0;
  // Deletes what the server keeps of a lock that is free, of whatever kind it was: its runs, and its number of permits. Deletes
  // nothing of a lock that is held.
  virtual Result<Forgotten> forget_runs(const LockName& name, const CallLimits& limit) = 0;
  // Logs a run that did not begin. `owner`: the owner of its last attempt. LockSpec::who names what would have run.
  virtual Result<Done> note_skipped(const LockSpec& spec, const Owner& owner, const SkippedRun& run,
                                    const CallLimits& limit) = 0;
};

// `rlock forget`.
class OnceMemory {
 public:
  virtual ~OnceMemory() = default;
  // Deletes the success that `rlock once` remembers. False: there was none.
  virtual Result<bool> forget_success(const LockName& name, const CallLimits& limit) = 0;
};

// The error of a verb that needs an ability which the server does not offer; exit code 78. `server` as shown to people.
inline Error not_offered(std::string_view verb, std::string_view server)
{
  return {ErrorCode::config, "rlock " + std::string(verb) + ": the server " + std::string(server) +
                                 " does not offer it (give another server with -S)"};
}

}  // namespace rlock
