// SPDX-License-Identifier: Apache-2.0
// The runs of a lock that are over, as its event log tells them (lock/event_log.h). Plain values and pure functions.
#pragma once

#include "lock/holder.h"
#include "lock/names.h"
#include "lock/schema.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct EventLogEntry;

// What a release says about the run that it ends, for the event log.
struct RunResult {
  std::optional<int> exit_code;    // of rlock, or 128 + n when it dies of signal n; missing: unknown
  std::optional<Outcome> outcome;  // missing: as the exit code tells, or unknown
  int attempt = 0;                 // of rlock once: its number, from 1; 0: another verb
  Millis kept_for{
      0};  // of a failed rlock once: how long the lock then stays taken, until the next attempt or by --min-hold
  std::uint64_t fence = 0;  // its fencing number, which several servers have to agree on; 0: unknown
};

// The newer run that took the place of a skipped one, for people. `newer`: SkippedRun::newer. Empty: unknown.
std::string text_of_newer(std::string_view newer);

// What the exit code alone tells.
std::optional<Outcome> outcome_by(std::optional<int> exit_code);
std::optional<Outcome> outcome_of(const RunResult& result);

// Words for the event log, each after a NUL. Empty when nothing is known.
std::string encode(const RunResult& result);

struct PastRun {
  Owner owner;
  std::int64_t start_ms = 0;                      // since 1970, by the server's clock
  std::optional<Millis> duration = std::nullopt;  // skipped: the wait; nullopt: unknown
  std::optional<int> exit_code = std::nullopt;
  // nullopt with a duration: the release told no outcome. nullopt without: the owner has not confirmed the hand-over.
  std::optional<Outcome> outcome = std::nullopt;
  std::uint64_t fence = 0;  // 0: unknown
  std::optional<HolderInfo> info = std::nullopt;
  std::int64_t times = 1;      // skipped: how many such runs in a row this run stands for
  Millis waited{0};            // the time in the queue before the grant
  int attempt = 0;             // RunResult::attempt
  Millis kept_for{0};          // RunResult::kept_for
  std::string forced_by = {};  // for people: the last client that asked for the lock; empty: none
  std::string busy_by = {};    // skipped, for people: the holder at that time, or the newer run; empty: unknown
  bool replaced = false;       // skipped: a newer run took its place (run --latest)
};

// What a server knows of the runs of one lock.
struct LockHistory {
  std::vector<PastRun> runs = {};  // that are over, the last one first
  // Runs that began before this time, by the server's clock, may be missing, because only so many are kept; 0: none is.
  std::int64_t complete_since_ms = 0;
};

// False: the run was skipped, or its owner has not confirmed the hand-over.
inline bool has_begun(const PastRun& run)
{
  return run.outcome ? *run.outcome != Outcome::skipped : run.duration.has_value();
}

// "succeeded"; "replaced". `run` has an outcome.
inline std::string_view outcome_name(const PastRun& run) { return run.replaced ? "replaced" : name_of(*run.outcome); }

// A run that did not begin.
struct SkippedRun {
  Millis waited{0};
  std::optional<int> exit_code = std::nullopt;  // of a command that cannot be executed; nullopt: the lock was busy
  std::string newer = {};  // the HolderInfo of the newer run that took its place, or unknown_newer; empty: none did
};
inline constexpr std::string_view unknown_newer = "?";

// Whether an owner holds the lock now.
using IsHolder = std::function<bool(const Owner&)>;

// The runs that are over by the entries of one lock, sorted by their starts, the last one first. A run whose end is not in the
// log and whose owner is no longer a holder has expired. `now_ms`: by the server's clock.
std::vector<PastRun> past_runs(std::span<const EventLogEntry> entries, const IsHolder& is_holder, std::int64_t now_ms);

// Sorts the runs by their starts, the last one first. Of two runs with the same start, the later one in `runs` comes first.
void sort_newest_first(std::vector<PastRun>& runs);

}  // namespace rlock
