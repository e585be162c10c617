// SPDX-License-Identifier: Apache-2.0
// QuorumStore as a RunHistory.
#include "store/quorum/merged_runs.h"
#include "store/quorum/quorum_query.h"
#include "store/quorum/quorum_store.h"

namespace rlock {

using Runs = std::vector<PastRun>;

Result<std::vector<Runs>> QuorumStore::past_runs(std::span<const LockName> names, LogPart part, const PerAnswer& limits)
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

Result<Done> QuorumStore::note_skipped(const LockSpec& spec, const Owner& owner, const SkippedRun& run,
                                       const CallLimits& limit)
{
  const auto [answers, decision] = prove<Done>(
      Subject{"skip " + topic_of(spec.name, owner)}, majority(), limit,
      [spec, owner, run](QuorumServer& server, const CallLimits& within) {
        return server.store->run_history()->note_skipped(spec, owner, run, within);
      },
      [](const Done&) { return true; });
  return decision == Decision::carried ? Result(Done{}) : Result<Done>(no_quorum(answers, majority()));
}

}  // namespace rlock
