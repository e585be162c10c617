// SPDX-License-Identifier: Apache-2.0
#include "run/keep_runs.h"

#include <algorithm>
#include <cstdint>
#include "base/text.h"
#include "lock/kept_runs.h"

namespace rlock {
namespace {

constexpr Millis time_to_keep_runs{1000};
// One of so many runs that succeed copies the runs of the event log, which has the last 64 runs or more. So one of 100 000 runs is
// forgotten before it is copied.
constexpr std::uint64_t runs_for_a_copy = 6;

}  // namespace

void keep_runs(LockStore& store, const LockName& lock, std::optional<Millis> history, bool succeeded,
               Millis server_timeout, const Clock& clock, Rng& rng, const Log& log)
{
  if (!must_keep_runs(history) || (succeeded && below(rng, runs_for_a_copy) != 0)) {
    return;
  }
  const Millis timeout = std::min(time_to_keep_runs, server_timeout);
  const CallLimits whole{.deadline = clock.now() + timeout, .stop = StopToken::never()};
  const auto kept = store.keep_runs(lock, *history, {.clock = clock, .timeout = timeout, .whole = whole});
  if (!kept) {
    log.detail("cannot keep the history of " + printable(lock.text()) + ": " + kept.error().text);
  }
}

}  // namespace rlock
