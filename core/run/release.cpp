// SPDX-License-Identifier: Apache-2.0
#include "run/release.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include "base/duration.h"
#include "base/text.h"
#include "lock/kept_runs.h"

namespace rlock {
namespace {

constexpr Millis time_for_lost_lock{250};

// The end of this process takes a third of a ms of a core and cannot be interrupted, while the job of the next holder
// begins on that core. With 50 waiters and jobs of 3 ms this pause shortened the time from job to job by a tenth.
constexpr Millis head_start{3};

// The rest of --min-hold, which the server keeps as the ttl.
Millis time_to_keep(const ReleaseAllOptions& options, Instant now)
{
  return std::max(std::chrono::ceil<Millis>(options.keep_until - now), Millis{0});
}

bool is_lost(LockSession& session, const ReleaseAllOptions& options)
{
  const auto& event = session.lease().event();
  const bool not_renewed = options.lease_over && !session.lease().trouble().empty();
  return not_renewed || (event && !std::holds_alternative<ReleaseRequested>(*event));
}

Result<Release> release_once(const RunContext& context, LockSession& session, const ReleaseAllOptions& options,
                             const CallLimits& limit, bool late = false)
{
  RunResult result = options.result;
  result.fence = result.outcome == Outcome::unused ? 0 : session.fence();
  const Instant now = context.clock.now();
  const bool counts_from_start = options.succeeded && session.spec().period;
  return session.release({.keep = time_to_keep(options, now),
                          .succeeded = options.succeeded,
                          .ran = counts_from_start ? std::chrono::ceil<Millis>(now - options.began) : Millis{0},
                          .result = result,
                          .late = late},
                         limit);
}

CallLimits limit_for_lost_lock(const RunContext& context)
{
  return {.deadline = context.clock.now() + time_for_lost_lock, .stop = StopToken::never()};
}

// Whether the server found the lock gone while the job ran, and could not say more.
bool was_found_gone(LockSession& session)
{
  const auto& event = session.lease().event();
  const auto* const lost = event ? std::get_if<Lost>(&*event) : nullptr;
  return lost != nullptr && lost->found.is_unexplained();
}

// The event log of a run that is younger than its history has its grant, unless the server has lost that too.
bool has_server_lost_data(const RunContext& context, LockSession& session, const ReleaseAllOptions& options)
{
  const bool must_be_logged = options.began != Instant{} && context.clock.now() - options.began <
                                                                session.spec().who.history.value_or(default_history);
  return must_be_logged && session.is_grant_missing(limit_for_lost_lock(context));
}

// The server may still hold the lock for this owner, or name the owner that has it now, or why it is gone.
std::optional<Release> release_lost(const RunContext& context, LockSession& session, const ReleaseAllOptions& options)
{
  auto released = release_once(context, session, options, limit_for_lost_lock(context));
  if (!released) {
    return std::nullopt;
  }
  if (was_found_gone(session) && was_held(*released)) {
    const bool was_earlier = was_released_before(*released);
    released = Release(NotHeld{.cause = was_earlier ? LossCause::released_with_token : LossCause::gone});
  }
  auto* const lost = std::get_if<NotHeld>(&*released);
  if (lost != nullptr && lost->cause == LossCause::gone && has_server_lost_data(context, session, options)) {
    lost->cause = LossCause::server_lost_data;
  }
  return *std::move(released);
}

void tell_untold(const RunContext& context, const LockSession& session, const Release& release, bool records_success)
{
  const auto* const released = std::get_if<Released>(&release);
  if (released == nullptr || released->untold.empty()) {
    return;
  }
  const std::string key = session.name().text();
  context.log.notice("released " + printable(key) + ", but the server cannot note how the job ended" +
                         (records_success ? ", which runs again" : "") + ": " + released->untold,
                     {.event = "release_untold", .key = key});
}

// Whether the lock was not lost while the job ran.
bool was_over_after_job(const RunRequest& request, const RunContext& context, LockSession& session,
                        const ReleaseAllOptions& options, const NotHeld& answer)
{
  const bool was_not_renewed = options.lease_over && request.automatic;
  return session.lease().budget().explains_late_release(options.ended, context.clock.now()) && !was_not_renewed &&
         !answer.forced && !session.lease().event();
}

// The event log of the server may say that the lock was lost.
void note_over_after_job(const RunContext& context, LockSession& session, const ReleaseAllOptions& options)
{
  context.log.detail("the lease of " + printable(session.name().text()) +
                         " was over before the lock could be released; the job had ended before",
                     {.event = "released_late", .key = session.name().text()});
  [[maybe_unused]] const auto noted = release_once(context, session, options, limit_for_lost_lock(context), true);
}

// nullopt: unknown, or not to be told; the ttl frees the lock.
std::optional<Release> release_one(const RunRequest& request, const RunContext& context, LockSession& session,
                                   const ReleaseAllOptions& options)
{
  if (is_lost(session, options)) {
    return release_lost(context, session, options);
  }
  const bool records_success = request.once && options.succeeded;  // without the record the job would run again
  const Instant give_up = std::max({options.give_up, context.clock.now() + first_release_pause,
                                    records_success ? session.lease().budget().valid_until() : Instant{}});
  auto released = retry_release(
      context.clock,
      {.server_timeout = request.server.timeout, .give_up = give_up, .longest_pause = options.longest_pause},
      [&](const CallLimits& limit) { return release_once(context, session, options, limit); },
      [&] { session.drop_connection(); });
  const auto* const not_held = released ? std::get_if<NotHeld>(&*released) : nullptr;
  if (not_held != nullptr && was_over_after_job(request, context, session, options, *not_held)) {
    note_over_after_job(context, session, options);
    return std::nullopt;
  }
  const bool may_be_gone = options.result.outcome == Outcome::unused || options.is_announced;
  if (released && !was_held(*released) && !may_be_gone) {
    ReleaseAllOptions lost = options;
    lost.result = {.outcome = Outcome::lost};
    auto answer = release_lost(context, session, lost).value_or(*std::move(released));
    return std::holds_alternative<Dequeued>(answer) ? Release(NotHeld{}) : answer;
  }
  if (released) {
    tell_untold(context, session, *released, records_success);
    return *std::move(released);
  }
  context.log.notice("cannot release " + printable(session.name().text()) + ": " + released.error().text +
                         "; it frees itself within " + show(request.ttl) +
                         (records_success ? " and runs again, because the server does not know of its success" : ""),
                     {.event = "release_failed", .key = session.name().text()});
  return std::nullopt;
}

bool was_handed_over(const Release& release)
{
  const auto* released = std::get_if<Released>(&release);
  return released != nullptr && released->passed_on;
}

}  // namespace

ReleaseFindings release_all(const RunRequest& request, const RunContext& context, std::span<LockSession> held,
                            const ReleaseAllOptions& options)
{
  ReleaseFindings findings(held.size());
  bool handed_over = false;
  std::vector<LockSession*> released;
  for (std::size_t i = held.size(); i-- > 0;) {
    const auto release = release_one(request, context, held[i], options);
    if (const auto* lost = release ? std::get_if<NotHeld>(&*release) : nullptr) {
      findings[i] = *lost;
    }
    handed_over = handed_over || (release && was_handed_over(*release));
    if (release && std::holds_alternative<Released>(*release) && options.result.outcome != Outcome::unused) {
      released.push_back(&held[i]);
    }
  }
  if (!released.empty() && options.keep_until > context.clock.now()) {
    held.front().leave_keeper_of_released();
  }
  if (handed_over) {
    context.clock.sleep_until(context.clock.now() + head_start, StopToken::never());
  }
  for (LockSession* const session : released) {
    session->keep_runs(options.succeeded);
  }
  return findings;
}

std::vector<LockFacts> lock_facts(std::span<LockSession> held, const ReleaseFindings& findings)
{
  std::vector<LockFacts> outcomes;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Lease& lease = held[i].lease();
    outcomes.push_back({.lock = held[i].name().text(),
                        .event = lease.event(),
                        .release = findings[i],
                        .valid_until = lease.budget().valid_until(),
                        .trouble = lease.trouble()});
  }
  return outcomes;
}

void take_back(const RunRequest& request, const RunContext& context, std::span<LockSession> held,
               std::optional<Millis> within)
{
  release_all(
      request, context, held,
      {.give_up = context.clock.now() + std::min(within.value_or(request.server.timeout), request.server.timeout),
       .result = {.outcome = Outcome::unused}});
}

namespace {

constexpr int attempts_per_timeout = 5;

}  // namespace

Result<Release> retry_release(const Clock& clock, const RetryReleaseOptions& options,
                              const std::function<Result<Release>(const CallLimits&)>& release,
                              const std::function<void()>& drop_connection)
{
  const Millis each = std::max(options.server_timeout / attempts_per_timeout, first_release_pause);
  Millis pause = first_release_pause;
  std::optional<Error> failure;
  for (;;) {
    const Instant now = clock.now();
    auto released = release({.deadline = std::min(now + each, options.give_up), .stop = StopToken::never()});
    if (released) {
      return released;
    }
    if (!failure || now + each <= options.give_up) {
      failure = released.error();
    }
    if (!is_passing(released.error().code)) {
      return *failure;
    }
    drop_connection();
    clock.sleep_until(std::min(clock.now() + pause, options.give_up), StopToken::never());
    if (clock.now() >= options.give_up) {
      return *failure;
    }
    pause = std::min(2 * pause, options.longest_pause);
  }
}

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
