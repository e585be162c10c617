// SPDX-License-Identifier: Apache-2.0
#include "run/lock_set.h"

#include "base/secrets.h"
#include "process/guardian.h"
#include "run/identity.h"
#include "run/notify_run.h"
#include "run/request_policy.h"
#include "run/retry_release.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <iterator>
#include <span>

#include <unistd.h>

namespace rlock {
namespace {

HolderInfo holder_info(const RunRequest& request)
{
  return {.host = host_name(),
          .pid = ::getpid(),
          .user = user_name(),
          .command = shown_command(request.argv),
          .label = request.label,
          .since_ms = wall_clock_ms(),
          .lease = request.ttl,
          .automatic = request.automatic,
          .kill_after = request.kill_after,
          .latest = request.latest,
          .history = request.history};
}

bool expires_earlier(const LockSession& a, const LockSession& b)
{
  return a.lease().budget().valid_until() < b.lease().budget().valid_until();
}

// `keep_until`: missing when no job began.
bool release_orphaned(LockStore& store, const LockSession& session, std::optional<Instant> keep_until,
                      const RetryReleaseOptions& options, const Clock& clock)
{
  const EndOfRun result =
      keep_until ? EndOfRun{.outcome = Ending::lost, .fence = session.fence()} : EndOfRun{.outcome = Ending::unused};
  const auto release = [&](const CallLimits& limit) {
    const Instant now = clock.now();
    const Millis keep = std::max(std::chrono::ceil<Millis>(keep_until.value_or(now) - now), Millis{0});
    return store.release(session.spec(), session.hold(), {.keep = keep, .result = result}, limit);
  };
  const auto released = retry_release(clock, options, release, [&] { store.forget(); });
  return released && !std::holds_alternative<NotHeld>(*released);
}

// JobSpec::release_for_runner. Called in the guardian, a fork of the runner. Uses a new connection,
// because the runner's connections are closed in the guardian. Does not record a success for RunRequest::once.
// --min-hold counts from `started`. Tries for server.timeout in all. False: a lock was no longer held, or could not be
// released.
bool release_for_runner(const RunRequest& request, const RunContext& context, std::span<const LockSession> sessions,
                        std::optional<Instant> started)
{
  const auto store = open_store(request.server, context.clock, StopToken::never());
  if (!store) {
    return false;
  }
  const RetryReleaseOptions options{.server_timeout = request.server.timeout,
                                    .give_up = context.clock.now() + request.server.timeout};
  bool all_released = true;
  const auto keep_until = started ? std::optional(*started + request.min_hold) : std::nullopt;
  for (std::size_t i = sessions.size(); i-- > 0;) {
    all_released = release_orphaned(**store, sessions[i], keep_until, options, context.clock) && all_released;
  }
  return all_released;
}

// The earliest end and the shortest length of the leases of a job whose runner was killed. nullopt: one lock is lost. Error: a
// server does not answer.
Result<std::optional<LeaseTerm>> renew_each(LockStore& store, std::span<const LockSession> sessions,
                                            const CallLimits& limit)
{
  LeaseTerm all{.from = far_future, .length = Millis::max()};
  for (const LockSession& session : sessions) {
    const auto renewal = store.renew_hold(session.spec(), session.hold(), {}, limit);
    if (!renewal) {
      return renewal.error();
    }
    const auto* renewed = std::get_if<Renewed>(&*renewal);
    if (renewed == nullptr || !renewed->lease) {
      return std::optional<LeaseTerm>();
    }
    all = {.from = std::min(all.from, renewed->lease->from), .length = std::min(all.length, renewed->lease->length)};
  }
  return std::optional(all);
}

// JobSpec::keep_for_runner, on a new connection each time. A server that cannot be reached is asked again until the leases are
// over. `lease`: the last one.
std::optional<Instant> keep_for_runner(const RunRequest& request, const RunContext& context,
                                       std::span<const LockSession> sessions, LeaseTerm& lease)
{
  if (!request.automatic) {
    return std::nullopt;
  }
  const Instant now = context.clock.now();
  if (const auto store = open_store(request.server, context.clock, StopToken::never())) {
    const auto renewed =
        renew_each(**store, sessions, {.deadline = now + request.server.timeout, .stop = StopToken::never()});
    if (renewed && !*renewed) {
      return std::nullopt;
    }
    lease = renewed ? **renewed : lease;
  }
  return now < lease.from + lease.length ? std::optional(now + renewal_period(lease.length)) : std::nullopt;
}

// Runs --notify in the guardian. A runner that was killed before its job began had no run to tell about.
void tell_for_runner(const RunRequest& request, const RunContext& context, const LockSet& held, Instant started,
                     bool released)
{
  const RunReport report{.end = DieOf{SIGKILL},
                         .outcome = std::string(name_of(Ending::lost)),
                         .message = runner_killed_text(false, released)};
  notify_of(request, context, &held, report, std::chrono::ceil<Millis>(context.clock.now() - started), nullptr,
            [&](const std::string& line) { context.log.error(line, {.event = "notify_failed"}); });
}

// 0: unknown.
std::uint64_t fence_in(const std::string& digits)
{
  std::uint64_t fence = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), fence);
  return fence;
}

// Ends the run of a runner that was killed: releases the locks and runs --notify. The guardian calls this. Returns whether all
// locks are released.
bool end_for_runner(const RunRequest& request, const RunContext& context, LockSet& held,
                    const std::optional<OrphanedJob>& job)
{
  const auto started = job ? std::optional(job->started) : std::nullopt;
  if (job) {
    held.sessions.front().set_fence(fence_in(job->late_value));
  }
  const bool released = release_for_runner(request, context, held.sessions, started);
  if (job) {
    tell_for_runner(request, context, held, *started, released);
  }
  return released;
}

}  // namespace

LockSet::LockSet(const RunRequest& request, const RunContext& context, const std::string& path)
    : prepared_job(
          request, context, path,
          [this, &request, &context](const std::optional<OrphanedJob>& job) {
            return end_for_runner(request, context, *this, job);
          },
          [this, &request, &context, lease = LeaseTerm{.from = Instant{}, .length = request.ttl}]() mutable {
            lease.from =
                lease.from == Instant{} ? context.clock.now() : lease.from;  // the runner's renewals are not known
            return keep_for_runner(request, context, sessions, lease);
          })
{
  const Owner owner = Owner::fresh(context.rng, ::getpid());
  const HolderInfo holder = holder_info(request);
  const Sync sync = sync_of(request.sync, request.ttl, request.server.timeout);
  const auto spec_of = [&](const LockName& name) {
    return LockSpec{.name = name,
                    .mode = request.mode,
                    .ttl = request.ttl,
                    .who = holder,
                    .once = request.once,
                    .sync = sync,
                    .again = request.again};
  };
  if (!request.shards.empty()) {
    std::vector<LockSpec> any_of;
    std::transform(request.shards.begin(), request.shards.end(), std::back_inserter(any_of), spec_of);
    sessions.emplace_back(request, context, std::move(any_of), owner);
    return;
  }
  sessions.reserve(request.names.size());
  for (const LockName& name : request.names) {
    sessions.emplace_back(request, context, std::vector{spec_of(name)}, owner);
  }
}

std::vector<HeldLock> LockSet::held_locks() const
{
  std::vector<HeldLock> locks;
  for (const LockSession& session : sessions) {
    locks.push_back({.name = session.name(), .hold = session.hold(), .shard = session.shard()});
  }
  return locks;
}

const LockSession& LockSet::first_to_expire() const
{
  return *std::min_element(sessions.begin(), sessions.end(), expires_earlier);
}

}  // namespace rlock
