// SPDX-License-Identifier: Apache-2.0
#include "runner/farewell.h"

#include "base/courtesy.h"
#include "base/duration.h"
#include "base/text.h"

#include <algorithm>
#include <string>

namespace rlock {
namespace {

constexpr Millis pause{50};
constexpr int tries = 5;

// What is left of --min-hold; the server counts it down, nobody sleeps.
Millis keep(const RunRequest& request, Instant taken_at, Instant now)
{
  const auto held = std::chrono::floor<Millis>(now - taken_at);
  return std::max(request.min_hold - held, Millis{0});
}

bool may_pass(Fault fault) { return fault == Fault::unreachable || fault == Fault::unfit; }

}  // namespace

std::optional<NotOurs> let_go(const RunRequest& request, const World& world, const Tenure& tenure, bool succeeded)
{
  step_aside();
  const Clock& clock = world.clock;
  const Instant give_up = clock.now() + request.server.timeout;
  const Millis each = std::max(request.server.timeout / tries, pause);
  std::string why;
  for (Instant now = clock.now(); now < give_up; now = clock.now()) {
    const Limit limit{.deadline = std::min(now + each, give_up), .stop = Stop::never()};
    const auto released =
        tenure.store.release(tenure.spec, tenure.owner,
                             {.keep = keep(request, tenure.taken.sent_at, now), .succeeded = succeeded}, limit);
    if (released) {
      const auto* gone = std::get_if<NotOurs>(&*released);
      return gone != nullptr ? std::optional{*gone} : std::nullopt;
    }
    why = released.error().text;
    if (!may_pass(released.error().fault)) {
      break;
    }
    tenure.store.forget();
    clock.sleep_until(std::min(clock.now() + pause, give_up), Stop::never());
  }
  world.log.notice("cannot release " + printable(request.name.text()) + ": " + why +
                   " (it frees itself within " + show(request.ttl) + ")");
  return std::nullopt;
}

}  // namespace rlock
