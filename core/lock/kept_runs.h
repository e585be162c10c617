// SPDX-License-Identifier: Apache-2.0
// The runs of a lock that are kept for longer than its event log has them. After some releases a client copies the runs from the
// event log to a list of texts on the server, so a release itself writes nothing more. The readers merge both. Plain values and pure
// functions; lua/single/runs.lua is the server's side.
//
// A text of the list is a chunk: some runs, with each of their holder records once. Anything may have written a text, so a reader
// takes what it can read and bounds each number.
#pragma once

#include "lock/past_run.h"
#include "lock/requests.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rlock {

inline constexpr std::size_t longest_chunk = 3500;     // bytes, unless one run alone is longer
inline constexpr std::size_t most_chunks = 512;        // of the list: with longest_chunk less than 2 MB
inline constexpr std::size_t chunks_to_compact = 384;  // a longer list is written again, in fewer and fuller chunks
inline constexpr std::size_t compacted_bytes =
    std::size_t{640} * 1024;  // of all chunks after that: a record of 1 MiB has room for them

// Whether the event log alone need not have all runs of so long a time.
bool must_keep_runs(std::optional<Millis> history);

// Chunks of these runs, which are sorted by their starts, the last one first. `complete_since_ms`: LockHistory.
std::vector<std::string> encode_runs(std::span<const PastRun> runs, std::int64_t complete_since_ms = 0);
// Also of runs that several chunks have. `chunks`: the oldest first.
LockHistory decode_runs(std::span<const std::string> chunks);

// Those of the runs of the event log that will not change any more and that `kept` does not have.
std::vector<PastRun> runs_to_keep(std::span<const PastRun> logged, std::span<const PastRun> kept);

// What event log and list know together. Of a run that both have, the event log tells the end.
LockHistory merge_history(LockHistory logged, LockHistory kept);

// Leaves out the runs that ended before `oldest_ms`, and so many others that the chunks are no longer than `most_bytes`: first the
// runs that were skipped and those that succeeded, then the others, of each the oldest first.
LockHistory compact_history(LockHistory history, std::int64_t oldest_ms, std::size_t most_bytes = compacted_bytes);

// What `list --all` and monitoring ask of the runs of a lock. By the server's clock; 0: none is known.
struct RunSummary {
  std::int64_t last_success_ms = 0;            // when the last run that succeeded ended
  std::int64_t last_failure_ms = 0;            // when the last run ended that failed (is_failure)
  std::int64_t first_known_ms = 0;             // when the first known run began
  std::int64_t skips = 0;                      // the known runs that were skipped
  std::optional<Millis> every = std::nullopt;  // of the newest run or holder that told one; else of a skip
};
RunSummary summary_of(const LockState& state);
// How long ago a success was due; nullopt: none is overdue, or --every was not told.
std::optional<Millis> overdue_since(const RunSummary& summary, std::int64_t now_ms);

// failed, timed_out, lost, forced.
bool is_failure(const PastRun& run);

}  // namespace rlock
