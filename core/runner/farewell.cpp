// SPDX-License-Identifier: Apache-2.0
#include "runner/farewell.h"

#include "base/duration.h"
#include "base/text.h"

#include <algorithm>
#include <string>

namespace rlock {
namespace {

constexpr Millis pause{50};
constexpr int tries = 5;

// What is left of --min-hold; the server counts it down, nobody sleeps.
Millis keep(const Farewell& farewell, Instant now)
{
  return std::max(std::chrono::ceil<Millis>(farewell.keep_until - now), Millis{0});
}

std::optional<NotOurs> let_go_of(const RunRequest& request, const World& world, Holding& holding,
                                 const Farewell& farewell)
{
  const Clock& clock = world.clock;
  const Millis each = std::max(request.server.timeout / tries, pause);
  const Instant give_up = std::max(farewell.give_up, clock.now() + pause);
  std::string why;
  for (Instant now = clock.now(); now < give_up; now = clock.now()) {
    const Limit limit{.deadline = std::min(now + each, give_up), .stop = Stop::never()};
    const auto released =
        holding.release({.keep = keep(farewell, now), .succeeded = farewell.succeeded}, limit);
    if (released) {
      const auto* gone = std::get_if<NotOurs>(&*released);
      return gone != nullptr ? std::optional{*gone} : std::nullopt;
    }
    why = released.error().text;
    if (!is_passing(released.error().fault)) {
      break;
    }
    holding.forget();
    clock.sleep_until(std::min(clock.now() + pause, give_up), Stop::never());
  }
  world.log.notice("cannot release " + printable(holding.name().text()) + ": " + why +
                   " (it frees itself within " + show(request.ttl) + ")");
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<NotOurs>> let_go(const RunRequest& request, const World& world,
                                           std::span<Holding> taken, const Farewell& farewell)
{
  for (Holding& holding : taken) {
    holding.unwatch();
  }
  std::vector<std::optional<NotOurs>> found(taken.size());
  for (std::size_t i = taken.size(); i-- > 0;) {
    found[i] = let_go_of(request, world, taken[i], farewell);
  }
  return found;
}

}  // namespace rlock
