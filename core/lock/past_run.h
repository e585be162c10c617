// SPDX-License-Identifier: Apache-2.0
// The runs of a lock that are over, by its event log (lock/event_log.h). Plain values and pure functions.
#pragma once

#include "lock/holder.h"
#include "lock/names.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct EventLogEntry;

// How a run ended. lost: another client may have had the lock before the job was over, or the rlock of the run was killed.
enum class Ending { succeeded, failed, lost, forced, timed_out, skipped };

std::string_view name_of(Ending ending);  // "timed_out"

// What a release says about the run that it ends, for the event log.
struct EndOfRun {
  std::optional<int> exit_code;   // of rlock, or 128 + n when it dies of signal n; missing: unknown
  std::optional<Ending> outcome;  // missing: as the exit code tells, or unknown
  bool unused = false;            // no job has begun under the lock: this was no run
  std::uint64_t fence = 0;        // its fencing number, which several servers have to agree on; 0: unknown
};

// Words for the event log, each after a NUL. Empty when nothing is known.
std::string encode(const EndOfRun& result);

struct PastRun {
  Owner owner;
  std::int64_t start_ms = 0;                      // since 1970, by the server's clock
  std::optional<Millis> duration = std::nullopt;  // of `skipped` how long it waited; missing: unknown
  std::optional<int> exit_code = std::nullopt;
  // Missing: the lock was released without a word about a job; without a duration, its owner has not confirmed the hand-over.
  std::optional<Ending> outcome = std::nullopt;
  std::uint64_t fence = 0;  // 0: unknown
  std::optional<HolderInfo> info = std::nullopt;
  std::int64_t times = 1;  // of runs that did not begin: how many alike in a row this one stands for
  Millis waited{0};        // in the queue, before it had the lock
};

// False: skipped; or the lock was handed over to a waiter that has not confirmed it.
inline bool has_begun(const PastRun& run)
{
  return run.outcome ? *run.outcome != Ending::skipped : run.duration.has_value();
}

// A run that did not begin.
struct SkippedRun {
  Millis waited{0};
  std::optional<int> exit_code = std::nullopt;  // where the lock was not the reason: the command cannot be executed
};

// Whether an owner holds the lock now.
using IsHolder = std::function<bool(const Owner&)>;

// The runs that are over by the entries of one lock, in the order of their starts, the last one first. A run whose end is not
// in the log and whose owner is no holder any more has expired. `now_ms`: by the server's clock.
std::vector<PastRun> past_runs(std::span<const EventLogEntry> entries, const IsHolder& is_holder, std::int64_t now_ms);

// By their starts, the last one first. Of runs with the same start the one that stands later comes first.
void sort_newest_first(std::vector<PastRun>& runs);

}  // namespace rlock
