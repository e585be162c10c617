// SPDX-License-Identifier: Apache-2.0
// QuorumStore as a RunHistory. Each server has an event log of its own, which also has attempts that got no quorum.
#include "store/quorum/quorum_query.h"
#include "store/quorum/quorum_store.h"

#include <algorithm>
#include <map>

namespace rlock {
namespace {

using Runs = std::vector<PastRun>;

// Of what the servers say about one run: the earliest start, the latest end, and the greatest number, on which they agreed. A
// server that was away at its end knows no more than that the lease was over.
void merge(PastRun& run, const PastRun& other)
{
  const bool says_more = other.exit_code || (run.outcome == Ending::lost && other.outcome != Ending::lost);
  if (!run.exit_code && says_more) {
    run.exit_code = other.exit_code;
    run.outcome = other.outcome;
    run.duration = other.duration;
  }
  run.start_ms = std::min(run.start_ms, other.start_ms);
  run.fence = std::max(run.fence, other.fence);
  run.times = std::max(run.times, other.times);
}

// Those that `quorum` of the servers may have logged, `silent` of which did not answer.
Runs merged_runs(const std::vector<const Runs*>& logs, std::size_t quorum, std::size_t silent)
{
  struct Logged {
    PastRun run;
    std::size_t by = 0;
  };
  std::map<std::string, Logged> by_owner;
  for (const Runs* const log : logs) {
    for (const PastRun& run : *log) {
      Logged& logged = by_owner.try_emplace(run.owner.text(), Logged{run}).first->second;
      merge(logged.run, run);
      ++logged.by;
    }
  }
  Runs runs;
  for (auto& [owner, logged] : by_owner) {
    if (logged.by + silent >= quorum) {
      runs.push_back(std::move(logged.run));
    }
  }
  sort_newest_first(runs);
  return runs;
}

}  // namespace

Result<std::vector<std::vector<PastRun>>> QuorumStore::past_runs(std::span<const LockName> names, LogPart part,
                                                                 const PerAnswer& limits)
{
  const auto answered = [](const Answers<std::vector<Runs>>& answers) {
    return tally(answers, [](const auto&) { return true; }).yes;
  };
  const auto answers = ask_all<std::vector<Runs>>(
      Subject{"history"}, limits.whole,
      [all = std::vector(names.begin(), names.end()), part, &clock = m_clock, timeout = limits.timeout](
          QuorumServer& server, const CallLimits& within) {
        return server.store->run_history()->past_runs(all, part,
                                                      PerAnswer{.clock = clock, .timeout = timeout, .whole = within});
      },
      [&](const auto& so_far) { return answered(so_far) >= majority(); });
  const std::size_t answering = answered(answers);
  if (answering < majority()) {
    return no_quorum(answers, majority());
  }
  std::vector<Runs> all;
  for (std::size_t lock = 0; lock < names.size(); ++lock) {
    std::vector<const Runs*> logs;
    for (const auto& answer : answers) {
      if (answer && *answer) {
        logs.push_back(&(**answer)[lock]);
      }
    }
    all.push_back(merged_runs(logs, majority(), size() - answering));
  }
  return all;
}

Result<Done> QuorumStore::note_skipped(const LockSpec& spec, const Owner& owner, Millis waited, const CallLimits& limit)
{
  const auto [answers, decision] = prove<Done>(
      Subject{"skip " + topic_of(spec.name, owner)}, majority(), limit,
      [spec, owner, waited](QuorumServer& server, const CallLimits& within) {
        return server.store->run_history()->note_skipped(spec, owner, waited, within);
      },
      [](const Done&) { return true; });
  return decision == Decision::carried ? Result(Done{}) : Result<Done>(no_quorum(answers, majority()));
}

}  // namespace rlock
