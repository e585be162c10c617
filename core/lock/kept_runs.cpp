// SPDX-License-Identifier: Apache-2.0
#include "lock/kept_runs.h"

#include "base/defaults.h"
#include "lock/kept_runs_codec.h"

#include <algorithm>
#include <set>
#include <utility>

namespace rlock {
namespace {

// An owner is never used for a second acquisition; a foreign client may use it again, for another number.
using RunKey = std::pair<std::string, std::uint64_t>;
RunKey key_of(const PastRun& run) { return {run.owner.text(), run.fence}; }

std::int64_t end_of(const PastRun& run) { return run.start_ms + run.duration.value_or(Millis{0}).count(); }

// The runs that no chunk before had.
void add_new(std::vector<PastRun>& runs, std::vector<PastRun> more, std::set<RunKey>& seen)
{
  for (PastRun& run : more) {
    if (seen.insert(key_of(run)).second) {
      runs.push_back(std::move(run));
    }
  }
}

bool goes_first(const PastRun& run) { return run.outcome == Outcome::succeeded || run.outcome == Outcome::skipped; }

std::size_t bytes_of(std::span<const PastRun> runs)
{
  std::size_t bytes = 0;
  for (const std::string& chunk : encode_runs(runs)) {
    bytes += chunk.size();
  }
  return bytes;
}

// Drops `count` runs at most, the oldest of those that go first, or of the others.
void drop_oldest(LockHistory& history, std::size_t count)
{
  std::vector<bool> drops(history.runs.size());
  for (const bool first : {true, false}) {
    for (std::size_t i = history.runs.size(); i-- > 0 && count > 0;) {
      if (!drops[i] && goes_first(history.runs[i]) == first) {
        drops[i] = true;
        --count;
        history.complete_since_ms = std::max(history.complete_since_ms, history.runs[i].start_ms + 1);
      }
    }
  }
  std::size_t place = 0;
  std::erase_if(history.runs, [&](const PastRun&) { return drops[place++]; });
}

}  // namespace

bool must_keep_runs(std::optional<Millis> history) { return history && *history > default_history; }

std::vector<std::string> encode_runs(std::span<const PastRun> runs, std::int64_t complete_since_ms)
{
  std::vector<std::string> chunks;
  ChunkWriter writer(complete_since_ms);
  for (std::size_t i = runs.size(); i-- > 0;) {
    writer.add(runs[i]);
    if (writer.size() >= longest_chunk) {
      chunks.push_back(writer.take());
    }
  }
  if (!writer.is_empty()) {
    chunks.push_back(writer.take());
  }
  return chunks;
}

LockHistory decode_runs(std::span<const std::string> chunks)
{
  LockHistory history;
  std::set<RunKey> seen;
  for (const std::string& chunk : chunks) {
    LockHistory part = decode_chunk(chunk);
    history.complete_since_ms = std::max(history.complete_since_ms, part.complete_since_ms);
    add_new(history.runs, std::move(part.runs), seen);
  }
  sort_newest_first(history.runs);
  if (chunks.size() >= most_chunks && !history.runs.empty()) {  // the server has cut the list
    history.complete_since_ms = std::max(history.complete_since_ms, history.runs.back().start_ms);
  }
  return history;
}

// The entry of a skipped run may still grow while no other run has ended after it, and a run without an end may get one.
std::vector<PastRun> runs_to_keep(std::span<const PastRun> logged, std::span<const PastRun> kept)
{
  std::set<RunKey> seen;
  for (const PastRun& run : kept) {
    seen.insert(key_of(run));
  }
  std::int64_t last_end = 0;
  for (const PastRun& run : logged) {
    last_end = has_begun(run) ? std::max(last_end, end_of(run)) : last_end;
  }
  std::vector<PastRun> runs;
  for (const PastRun& run : logged) {
    const bool is_past_skip = run.outcome == Outcome::skipped && end_of(run) < last_end;
    if ((has_begun(run) || is_past_skip) && !seen.contains(key_of(run))) {
      runs.push_back(run);
    }
  }
  return runs;
}

LockHistory merge_history(LockHistory logged, LockHistory kept)
{
  std::set<RunKey> seen;
  LockHistory merged;
  for (PastRun& run : logged.runs) {
    const auto same = run.info ? kept.runs.end() : std::ranges::find_if(kept.runs, [&](const PastRun& other) {
      return other.info && key_of(other) == key_of(run);
    });
    seen.insert(key_of(run));
    merged.runs.push_back(same == kept.runs.end() ? std::move(run) : *same);  // the log has forgotten its beginning
  }
  const bool fills_log = !kept.runs.empty();
  add_new(merged.runs, std::move(kept.runs), seen);
  sort_newest_first(merged.runs);
  merged.complete_since_ms = fills_log ? kept.complete_since_ms : logged.complete_since_ms;
  return merged;
}

LockHistory compact_history(LockHistory history, std::int64_t oldest_ms, std::size_t most_bytes)
{
  std::erase_if(history.runs, [&](const PastRun& run) { return end_of(run) < oldest_ms; });
  for (std::size_t bytes = bytes_of(history.runs); bytes > most_bytes; bytes = bytes_of(history.runs)) {
    const std::size_t of_one = std::max<std::size_t>(bytes / history.runs.size(), 1);
    drop_oldest(history, (bytes - most_bytes) / of_one + 1);
  }
  return history;
}

bool is_failure(const PastRun& run)
{
  return run.outcome == Outcome::failed || run.outcome == Outcome::timed_out || run.outcome == Outcome::lost ||
         run.outcome == Outcome::forced;
}

RunSummary summary_of(const LockState& state)
{
  RunSummary summary;
  std::optional<Millis> every_of_skips;  // counts where no known run has begun
  for (const PastRun& run : state.runs) {
    std::int64_t& last = is_failure(run) ? summary.last_failure_ms : summary.last_success_ms;
    if (is_failure(run) || run.outcome == Outcome::succeeded) {
      last = std::max(last, end_of(run));
    }
    summary.skips += run.outcome == Outcome::skipped ? run.times : 0;
    summary.first_known_ms = run.start_ms;
    if (!summary.every && run.info && has_begun(run)) {
      summary.every = run.info->every;
    }
    if (!every_of_skips && run.info && run.outcome == Outcome::skipped) {
      every_of_skips = run.info->every;
    }
  }
  summary.every = summary.every ? summary.every : every_of_skips;
  if (state.once) {
    summary.last_success_ms = std::max(summary.last_success_ms, state.once->at_ms);
  }
  for (const Holder& holder : freeze_of(state) == nullptr ? std::span(state.holders) : std::span<const Holder>{}) {
    summary.every = holder.info && holder.info->every ? holder.info->every : summary.every;
    const std::int64_t since = holder.info ? holder.info->since_ms : 0;
    summary.first_known_ms = summary.first_known_ms == 0 ? since : summary.first_known_ms;
  }
  return summary;
}

std::optional<Millis> overdue_since(const RunSummary& summary, std::int64_t now_ms)
{
  const std::int64_t since = summary.last_success_ms > 0 ? summary.last_success_ms : summary.first_known_ms;
  if (!summary.every || since == 0) {
    return std::nullopt;
  }
  const Millis late{now_ms - since - summary.every->count()};
  return late > Millis{0} ? std::optional(late) : std::nullopt;
}

}  // namespace rlock
