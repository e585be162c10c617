// SPDX-License-Identifier: Apache-2.0
#include "run/attempts.h"

#include <algorithm>
#include "base/duration.h"
#include "base/exit_code.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "lock/requests.h"

namespace rlock {
namespace {

constexpr Millis longest_delay = std::chrono::days{1};

// Of the job. Where the system refused what rlock needs, another host may succeed.
bool is_failure(std::optional<Outcome> outcome, std::optional<int> exit_code)
{
  const bool is_of_job = exit_code != static_cast<int>(ExitCode::os);
  return is_of_job && (outcome == Outcome::failed || outcome == Outcome::timed_out);
}

// Whether the caller came before the run, or the pause after it, was over; and in its period.
bool concerns(const PastRun& run, const Arrival& arrival)
{
  const std::int64_t over_ms = run.start_ms + run.duration.value_or(Millis{0}).count() + run.kept_for.count();
  const bool is_of_period = !arrival.period || run.start_ms >= period_begin(*arrival.period, arrival.at_ms);
  return over_ms >= arrival.at_ms && is_of_period;
}

}  // namespace

std::optional<Millis> next_attempt_in(const RunRequest& request, int attempt, const RunResult& result)
{
  const auto outcome = result.outcome ? result.outcome : outcome_by(result.exit_code);
  if (!is_failure(outcome, result.exit_code) || attempt >= request.attempts) {
    return std::nullopt;
  }
  Millis delay = request.retry_delay;
  for (int i = 1; i < attempt && delay < longest_delay; ++i) {
    delay *= 2;
  }
  return std::min(delay, longest_delay);
}

Turn turn_of(std::span<const PastRun> runs, const Arrival& arrival, int attempts, int own)
{
  const auto last = std::ranges::find_if(runs, has_begun);
  const bool counts = last != runs.end() && last->attempt > 0 && last->exit_code &&
                      is_failure(last->outcome, last->exit_code) && concerns(*last, arrival);
  const int before = std::max(counts ? last->attempt : 0, own);
  if (before < attempts) {
    return RunAttempt{before + 1};
  }
  return counts ? Turn{ShareFailure{*last}} : Turn{RunAttempt{before + 1}};
}

std::string done_text(const std::string& lock, Millis ago, std::span<const PastRun> runs, std::int64_t now_ms)
{
  const auto last = std::ranges::find_if(
      runs, [](const PastRun& run) { return run.outcome == Outcome::succeeded && run.attempt > 0; });
  const std::string by = last == runs.end() ? "" : ", by " + holder_text(last->owner, last->info);
  return lock + " has succeeded at " + shown_time(now_ms - ago.count()).value_or("-") + " (" + show_roughly(ago) +
         " ago)" + by + ": nothing to do";
}

std::string until_next(const std::optional<Period>& period, std::int64_t now_ms)
{
  return period && period->next_ms > now_ms ? " until " + shown_time(period->next_ms).value_or("-") : "";
}

std::string shared_text(const std::string& lock, const PastRun& run)
{
  const std::string host = run.info ? " on " + printable(run.info->host) : "";
  const std::string attempt = run.attempt > 1 ? ", attempt " + std::to_string(run.attempt) : "";
  return lock + " failed" + host + " (exit code " + std::to_string(run.exit_code.value_or(1)) + attempt +
         "): this call shares that result";
}

}  // namespace rlock
