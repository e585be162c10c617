// SPDX-License-Identifier: Apache-2.0
// Jobs whose rlock was killed or stopped.
#include "judge/checks.h"

#include <algorithm>
#include <chrono>
#include <csignal>

namespace rlock::judge {
namespace {

constexpr Millis outlives_killed{300};  // the promise is 50 ms on a machine that is not busy
constexpr int links{3};                 // guardian, job and its children: what stalls one may stall each

Millis ms(Instant::duration duration) { return std::chrono::ceil<Millis>(duration); }

std::optional<Instant> first(const RunRecord& run, Target target, int number)
{
  const auto found = std::find_if(run.signals.begin(), run.signals.end(), [&](const SentSignal& sent) {
    return sent.target == target && sent.number == number;
  });
  return found == run.signals.end() ? std::nullopt : std::optional(found->at);
}

// The first kill that makes an end of the job. A process of rlock that is stopped leaves the job to the lease.
std::optional<Instant> killed(const RunRecord& run)
{
  if (first(run, Target::runner, SIGSTOP) || first(run, Target::guardian, SIGSTOP)) {
    return std::nullopt;
  }
  const auto runner = first(run, Target::runner, SIGKILL);
  const auto guardian = first(run, Target::guardian, SIGKILL);
  return runner && guardian ? std::min(runner, guardian) : runner ? runner : guardian;
}

// A runner that is stopped renews nothing; nullopt: it ran again before the lease was over.
std::optional<Instant> stopped(const RunRecord& run)
{
  const auto at = first(run, Target::runner, SIGSTOP);
  const auto on = first(run, Target::runner, SIGCONT);
  return at && (!on || *on - *at > lease_of(run)) ? at : std::nullopt;
}

bool ran_at(const RunRecord& run, Instant at)
{
  return run.evidence.begin && run.evidence.begin->at <= at && (!run.evidence.end || run.evidence.end->at > at);
}

void judge_killed(const Records& records, const RunRecord& run, Instant at, Deaths& result)
{
  if (!ran_at(run, at) || outlasts_kill(run.form)) {
    return;
  }
  ++result.killed;
  const Millis outlived = std::max(ms(run.evidence.last - at), Millis(0));
  const Millis waited = stalled(records, at, run.evidence.last);
  result.longest = std::max(result.longest, outlived);
  if (outlived > outlives_killed + links * waited) {
    result.violations.push_back({"a job dies with its rlock",
                                 "the job of " + describe(run) + " lived " + std::to_string(outlived.count()) +
                                     " ms longer than its rlock; the machine stalled for " +
                                     std::to_string(waited.count()) + " ms of these",
                                 {run.id}});
  }
}

void judge_stopped(const Records& records, const RunRecord& run, Instant at, Deaths& result)
{
  const Instant over = at + lease_of(run);
  const Instant until = first(run, Target::runner, SIGCONT).value_or(far_future);
  if (!ran_at(run, at)) {
    return;
  }
  ++result.stopped;
  const Instant last = std::min(run.evidence.last, until);
  if (last > over + stalled(records, over, last)) {
    result.violations.push_back({"dead before expiry",
                                 "the job of " + describe(run) + " lived " + std::to_string(ms(last - over).count()) +
                                     " ms longer than the lease of its stopped rlock",
                                 {run.id}});
  }
}

}  // namespace

Deaths check_deaths(const Records& records)
{
  Deaths result;
  for (const RunRecord& run : records.runs) {
    if (run.kind == Kind::script || run.kind == Kind::nested) {
      continue;  // a keeper kills no process; the inner run of a nested one renews as well
    }
    if (const auto at = killed(run)) {
      judge_killed(records, run, *at, result);
    }
    if (const auto at = stopped(run)) {
      judge_stopped(records, run, *at, result);
    }
  }
  return result;
}

}  // namespace rlock::judge
