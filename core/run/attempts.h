// SPDX-License-Identifier: Apache-2.0
// `rlock once`: the attempts of a job, on one host or on several, and the failure that its callers share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include "lock/past_run.h"
#include "lock/period.h"
#include "run/request.h"

namespace rlock {

// How long after this attempt the next one follows. nullopt: none does, because the job did not fail, or because this was the last
// attempt. Only a job that failed or whose time was over is tried again, and only such a result is shared: another host may have
// more luck with a job that was cancelled, forced or lost.
std::optional<Millis> next_attempt_in(const RunRequest& request, int attempt, const RunResult& result);

// What a caller of `rlock once` does with the lock that it has got.
struct RunAttempt {
  int number;  // from 1
};
struct ShareFailure {
  PastRun run;  // the last attempt, which has an exit code
};
using Turn = std::variant<RunAttempt, ShareFailure>;

// When a caller came, by the server's clock.
struct Arrival {
  std::int64_t at_ms;
  std::optional<Period> period;  // LockSpec::period
};

// `runs`: those that are over, the last one first. `own`: the number of the last attempt of this process; 0: none.
Turn turn_of(std::span<const PastRun> runs, const Arrival& arrival, int attempts, int own);

// "nightly has succeeded at 2026-11-21 13:00:00 +01:00 (5m 3s ago), by ann@web1 (pid 71): nothing to do". `lock`: printable. `runs`:
// as for turn_of; one that is too old is in none of them, and not named.
std::string done_text(const std::string& lock, Millis ago, std::span<const PastRun> runs, std::int64_t now_ms);

// " until 2026-11-22 00:00:00 +01:00", when the success of --per no longer counts; "" without a period, or when it is over.
std::string until_next(const std::optional<Period>& period, std::int64_t now_ms);

// "nightly failed on web2 (exit code 3): this call shares that result". `lock`: printable.
std::string shared_text(const std::string& lock, const PastRun& run);

}  // namespace rlock
