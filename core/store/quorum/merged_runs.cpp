// SPDX-License-Identifier: Apache-2.0
#include "store/quorum/merged_runs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace rlock {
namespace {

// How much a server knows of the end of a run. One that was away then knows only that the lease was over, or that its waiter did
// not confirm there.
int knowledge_of_end(const PastRun& run)
{
  const bool is_inferred = !run.exit_code && (run.outcome == Ending::lost || run.outcome == Ending::timed_out);
  const bool is_told = run.outcome && !is_inferred;
  return (run.exit_code ? 8 : 0) + (is_told ? 4 : 0) + (run.duration ? 2 : 0) + (run.outcome ? 0 : 1);
}

std::optional<std::int64_t> end_ms(const PastRun& run)
{
  return run.duration ? std::optional(run.start_ms + run.duration->count()) : std::nullopt;
}

// Merges what two servers say about one run: the earliest start, and the end that the better informed server tells.
void merge(PastRun& run, const PastRun& other)
{
  auto end = end_ms(run);
  if (knowledge_of_end(other) > knowledge_of_end(run)) {
    run.exit_code = other.exit_code;
    run.outcome = other.outcome;
    end = end_ms(other);
  }
  run.start_ms = std::min(run.start_ms, other.start_ms);
  run.duration = end ? std::optional(Millis{*end - run.start_ms}) : std::nullopt;
  run.times = std::max(run.times, other.times);
  run.waited = std::max(run.waited, other.waited);
}

// The number that the run was told. Each grant has a number of its own, in the order of the grants, and the run counts with the
// quorum-th of them. A release names it, so then a quorum of the logs has the same number.
std::uint64_t agreed_fence(std::vector<std::uint64_t> fences, std::size_t quorum)
{
  const auto place = fences.begin() + static_cast<std::ptrdiff_t>(std::min(quorum, fences.size()) - 1);
  std::nth_element(fences.begin(), place, fences.end());
  return *place;
}

}  // namespace

std::vector<PastRun> merged_runs(const std::vector<const std::vector<PastRun>*>& logs, std::size_t quorum,
                                 std::size_t silent)
{
  struct Logged {
    PastRun run;
    std::vector<std::uint64_t> fences;  // one from each server that has logged it
  };
  std::map<std::string, Logged> by_owner;
  for (const auto* const log : logs) {
    for (const PastRun& run : *log) {
      Logged& logged = by_owner.try_emplace(run.owner.text(), Logged{run, {}}).first->second;
      merge(logged.run, run);
      logged.fences.push_back(run.fence);
    }
  }
  std::vector<PastRun> runs;
  for (auto& [owner, logged] : by_owner) {
    if (logged.fences.size() + silent >= quorum) {
      logged.run.fence = agreed_fence(std::move(logged.fences), quorum);
      runs.push_back(std::move(logged.run));
    }
  }
  sort_newest_first(runs);
  return runs;
}

}  // namespace rlock
