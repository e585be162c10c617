// SPDX-License-Identifier: Apache-2.0
#include "run/orphaned_locks.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr Millis pause{50};  // between two tries
constexpr int tries = 5;

bool release(LockStore& store, const LockSession& session, Instant keep_until, Instant give_up, Millis each,
             const Clock& clock)
{
  for (Instant now = clock.now(); now < give_up; now = clock.now()) {
    const ReleaseOptions release_options{.keep = std::max(std::chrono::ceil<Millis>(keep_until - now), Millis{0})};
    const CallLimits limit{.deadline = std::min(now + each, give_up), .stop = StopToken::never()};
    const auto released = store.release(session.spec(), session.hold(), release_options, limit);
    if (released || !is_passing(released.error().fault)) {
      return released && !std::holds_alternative<NotHeld>(*released);
    }
    store.forget();
    clock.sleep_until(std::min(clock.now() + pause, give_up), StopToken::never());
  }
  return false;
}

}  // namespace

bool release_for_runner(const RunRequest& request, const RunContext& context, std::span<const LockSession> taken,
                        Instant started)
{
  const auto store = open_store(request.server, context.clock, StopToken::never());
  if (!store) {
    return false;
  }
  const Instant give_up = context.clock.now() + request.server.timeout;
  const Millis each = std::max(request.server.timeout / tries, pause);
  bool all_released = true;
  for (std::size_t i = taken.size(); i-- > 0;) {
    all_released = release(**store, taken[i], started + request.min_hold, give_up, each, context.clock) && all_released;
  }
  return all_released;
}

}  // namespace rlock
