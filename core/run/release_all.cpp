// SPDX-License-Identifier: Apache-2.0
#include "run/release_all.h"

#include "base/duration.h"
#include "base/text.h"

#include <algorithm>
#include <string>

namespace rlock {
namespace {

constexpr Millis pause{50};
constexpr int tries = 5;
constexpr Millis for_a_lost_lock{250};

// For whom the lock went to: our own end takes a third of a ms of a core that nobody interrupts, while its job is to begin
// there. Measured, with 50 waiting for jobs of 3 ms: a tenth less time from job to job.
constexpr Millis head_start{3};

// What is left of --min-hold; the server counts it down, nobody sleeps.
Millis keep(const Farewell& farewell, Instant now)
{
  return std::max(std::chrono::ceil<Millis>(farewell.keep_until - now), Millis{0});
}

bool is_lost(Holding& holding, const Farewell& farewell)
{
  const auto& verdict = holding.verdict();
  const bool not_renewed = farewell.lease_over && !holding.trouble().empty();
  return not_renewed || (verdict && !std::holds_alternative<Wanted>(*verdict));
}

// The server may still have the lock of this owner, or tell which owner has it now.
std::optional<Release> try_once(const World& world, Holding& holding, const Farewell& farewell)
{
  const Instant now = world.clock.now();
  auto released = holding.release({.keep = keep(farewell, now), .succeeded = farewell.succeeded},
                                  {.deadline = now + for_a_lost_lock, .stop = Stop::never()});
  return released ? std::optional(*std::move(released)) : std::nullopt;
}

// nullopt: nobody knows, and the ttl will do it.
std::optional<Release> let_go_of(const RunRequest& request, const World& world, Holding& holding,
                                 const Farewell& farewell)
{
  if (is_lost(holding, farewell)) {
    return try_once(world, holding, farewell);
  }
  const Clock& clock = world.clock;
  const Millis each = std::max(request.server.timeout / tries, pause);
  const bool is_to_be_remembered = request.once && farewell.succeeded;  // else somebody will do it again
  const Instant give_up =
      std::max({farewell.give_up, clock.now() + pause, is_to_be_remembered ? holding.valid_until() : Instant{}});
  std::string why;
  for (Instant now = clock.now(); now < give_up; now = clock.now()) {
    const Limit limit{.deadline = std::min(now + each, give_up), .stop = Stop::never()};
    auto released = holding.release({.keep = keep(farewell, now), .succeeded = farewell.succeeded}, limit);
    if (released) {
      return *std::move(released);
    }
    if (why.empty() || now + each <= give_up) {  // what a try says for which there was no time is no reason
      why = released.error().text;
    }
    if (!is_passing(released.error().fault)) {
      break;
    }
    holding.forget();
    clock.sleep_until(std::min(clock.now() + pause, give_up), Stop::never());
  }
  world.log.notice("cannot release " + printable(holding.name().text()) + ": " + why + "; it frees itself within " +
                       show(request.ttl) +
                       (is_to_be_remembered ? " and runs again, because the server does not know of its success" : ""),
                   {.event = "release_failed", .key = holding.name().text()});
  return std::nullopt;
}

bool was_passed_on(const Release& release)
{
  const auto* released = std::get_if<Released>(&release);
  return released != nullptr && released->passed_on;
}

}  // namespace

std::vector<std::optional<NotOurs>> let_go(const RunRequest& request, const World& world, std::span<Holding> taken,
                                           const Farewell& farewell)
{
  for (Holding& holding : taken) {
    holding.unwatch();
  }
  std::vector<std::optional<NotOurs>> found(taken.size());
  bool passed_on = false;
  for (std::size_t i = taken.size(); i-- > 0;) {
    const auto end = let_go_of(request, world, taken[i], farewell);
    if (const auto* gone = end ? std::get_if<NotOurs>(&*end) : nullptr) {
      found[i] = *gone;
    }
    passed_on = passed_on || (end && was_passed_on(*end));
  }
  if (passed_on) {
    world.clock.sleep_until(world.clock.now() + head_start, Stop::never());
  }
  return found;
}

std::vector<LockFate> fates_of(std::span<Holding> taken, const std::vector<std::optional<NotOurs>>& found)
{
  std::vector<LockFate> fates;
  for (std::size_t i = 0; i < found.size(); ++i) {
    fates.push_back({.lock = taken[i].name().text(),
                     .verdict = taken[i].verdict(),
                     .release = found[i],
                     .valid_until = taken[i].valid_until(),
                     .trouble = taken[i].trouble()});
  }
  return fates;
}

}  // namespace rlock
