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
Millis keep(const ReleaseAllOptions& release_options, Instant now)
{
  return std::max(std::chrono::ceil<Millis>(release_options.keep_until - now), Millis{0});
}

bool is_lost(LockSession& session, const ReleaseAllOptions& release_options)
{
  const auto& lease_event = session.lease_event();
  const bool not_renewed = release_options.lease_over && !session.trouble().empty();
  return not_renewed || (lease_event && !std::holds_alternative<ReleaseRequested>(*lease_event));
}

// The server may still have the lock of this owner, or tell which owner has it now.
std::optional<Release> try_once(const RunContext& context, LockSession& session,
                                const ReleaseAllOptions& release_options)
{
  const Instant now = context.clock.now();
  auto released = session.release({.keep = keep(release_options, now), .succeeded = release_options.succeeded},
                                  {.deadline = now + for_a_lost_lock, .stop = StopToken::never()});
  return released ? std::optional(*std::move(released)) : std::nullopt;
}

// nullopt: nobody knows, and the ttl will do it.
std::optional<Release> let_go_of(const RunRequest& request, const RunContext& context, LockSession& session,
                                 const ReleaseAllOptions& release_options)
{
  if (is_lost(session, release_options)) {
    return try_once(context, session, release_options);
  }
  const Clock& clock = context.clock;
  const Millis each = std::max(request.server.timeout / tries, pause);
  const bool is_to_be_remembered = request.once && release_options.succeeded;  // else somebody will do it again
  const Instant give_up =
      std::max({release_options.give_up, clock.now() + pause, is_to_be_remembered ? session.valid_until() : Instant{}});
  std::string why;
  for (Instant now = clock.now(); now < give_up; now = clock.now()) {
    const CallLimits limit{.deadline = std::min(now + each, give_up), .stop = StopToken::never()};
    auto released =
        session.release({.keep = keep(release_options, now), .succeeded = release_options.succeeded}, limit);
    if (released) {
      return *std::move(released);
    }
    if (why.empty() || now + each <= give_up) {  // what a try says for which there was no time is no reason
      why = released.error().text;
    }
    if (!is_passing(released.error().fault)) {
      break;
    }
    session.forget();
    clock.sleep_until(std::min(clock.now() + pause, give_up), StopToken::never());
  }
  context.log.notice(
      "cannot release " + printable(session.name().text()) + ": " + why + "; it frees itself within " +
          show(request.ttl) +
          (is_to_be_remembered ? " and runs again, because the server does not know of its success" : ""),
      {.event = "release_failed", .key = session.name().text()});
  return std::nullopt;
}

bool was_passed_on(const Release& release)
{
  const auto* released = std::get_if<Released>(&release);
  return released != nullptr && released->passed_on;
}

}  // namespace

std::vector<std::optional<NotHeld>> release_all(const RunRequest& request, const RunContext& context,
                                                std::span<LockSession> taken, const ReleaseAllOptions& release_options)
{
  for (LockSession& session : taken) {
    session.unwatch();
  }
  std::vector<std::optional<NotHeld>> found(taken.size());
  bool passed_on = false;
  for (std::size_t i = taken.size(); i-- > 0;) {
    const auto end = let_go_of(request, context, taken[i], release_options);
    if (const auto* gone = end ? std::get_if<NotHeld>(&*end) : nullptr) {
      found[i] = *gone;
    }
    passed_on = passed_on || (end && was_passed_on(*end));
  }
  if (passed_on) {
    context.clock.sleep_until(context.clock.now() + head_start, StopToken::never());
  }
  return found;
}

std::vector<LockOutcome> lock_outcomes(std::span<LockSession> taken, const std::vector<std::optional<NotHeld>>& found)
{
  std::vector<LockOutcome> fates;
  for (std::size_t i = 0; i < found.size(); ++i) {
    fates.push_back({.lock = taken[i].name().text(),
                     .lease_event = taken[i].lease_event(),
                     .release = found[i],
                     .valid_until = taken[i].valid_until(),
                     .trouble = taken[i].trouble()});
  }
  return fates;
}

}  // namespace rlock
