// SPDX-License-Identifier: Apache-2.0
#include "run/lock_set.h"

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <span>
#include <utility>
#include "base/text.h"
#include "lock/period.h"
#include "process/guardian.h"
#include "process/proc.h"
#include "run/left_keeper.h"
#include "run/notify.h"
#include "run/release.h"

namespace rlock {
namespace {

// The process that operators see as the holder. The caller of rlock acquire stands for that, which is about to end.
pid_t holder_of(const RunRequest& request)
{
  if (request.watched) {
    return request.watched->pid;
  }
  return request.held_for == HeldFor::job ? ::getpid() : ::getppid();
}

// A freeze runs no command.
std::string command_of_holder(const RunRequest& request)
{
  switch (request.held_for) {
    case HeldFor::job: return shown_command(request.argv);
    case HeldFor::script: return shown_command(command_of(holder_of(request)));
    case HeldFor::nobody: break;
  }
  return "";
}

// Each waiter has a record in each line, so long lists are not stored.
std::optional<Pool> pool_of(const RunRequest& request)
{
  if (request.shards.empty()) {
    return std::nullopt;
  }
  Pool pool{.key = request.name().text(), .size = request.shards.size()};
  for (const std::string& name : request.shard_names) {
    pool.names = pool.names ? *pool.names + "," + name : name;
  }
  if (pool.names && pool.names->size() > longest_shard_names) {
    pool.names = "";
  }
  return pool;
}

HolderInfo holder_info(const RunRequest& request)
{
  const std::string user = user_name();
  return {.host = host_name(),
          .pid = holder_of(request),
          .user = user,
          .sudo_user = sudo_user(request.environment, user),
          .command = command_of_holder(request),
          .label = request.label,
          .since_ms = wall_clock_ms(),
          .lease = request.ttl,
          .automatic = request.automatic,
          .kill_after = request.kill_after,
          .latest = request.latest,
          .priority = request.priority,
          .history = request.history,
          .every = request.every,
          .freeze = request.freeze,
          .pool = pool_of(request)};
}

// The job must start with most of its lease left, and WAIT must answer before the connection times out.
Sync sync_of(const RunRequest& request)
{
  return {.replicas = request.sync, .within = std::min(request.server.timeout / 2, request.ttl / 4)};
}

// A spec for each shard, or for each lock.
std::vector<LockSpec> specs_of(const RunRequest& request)
{
  const auto period = request.per ? std::optional(period_at(*request.per, wall_clock_ms())) : std::nullopt;
  const LockSpec common{.name = request.name(),
                        .kind = request.kind,
                        .ttl = request.ttl,
                        .who = holder_info(request),
                        .once = request.once,
                        .sync = sync_of(request),
                        .again = request.again,
                        .beside = request.beside,
                        .period = period,
                        .max_waiting = request.max_waiting,
                        .ends_at = request.ends_at};
  std::vector<LockSpec> specs;
  const auto add = [&](const LockName& name) { specs.emplace_back(common).name = name; };
  if (request.shards.empty()) {
    std::ranges::for_each(request.names, add);
  } else {
    std::ranges::for_each(request.shards, add);
  }
  return specs;
}

bool expires_earlier(const LockSession& a, const LockSession& b)
{
  return a.lease().budget().valid_until() < b.lease().budget().valid_until();
}

// `keep_until`: missing when no job began.
bool release_orphaned(LockStore& store, const LockSession& session, std::optional<Instant> keep_until,
                      const RetryReleaseOptions& options, const Clock& clock)
{
  const RunResult result = keep_until ? RunResult{.outcome = Outcome::lost, .fence = session.fence()}
                                      : RunResult{.outcome = Outcome::unused};
  const auto release = [&](const CallLimits& limit) {
    const Instant now = clock.now();
    const Millis keep = std::max(std::chrono::ceil<Millis>(keep_until.value_or(now) - now), Millis{0});
    return store.release(session.spec(), session.hold(), {.keep = keep, .result = result}, limit);
  };
  const auto released = retry_release(clock, options, release, [&] { store.drop_connection(); });
  return released && was_held(*released);
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
  [[maybe_unused]] const auto left = leave_keeper_of_leases(**store, sessions.front().name());
  return all_released;
}

// The earliest end and the shortest length of the leases of a job whose runner was killed. nullopt: one lock is lost. Error: a
// server does not answer.
Result<std::optional<LeaseTerm>> renew_each(LockStore& store, std::span<const LockSession> sessions,
                                            const CallLimits& limit)
{
  LeaseTerm all{.from = far_future, .length = Millis::max()};
  for (const LockSession& session : sessions) {
    ASSIGN_OR_RETURN(const auto renewal, store.renew_hold(session.spec(), session.hold(), {}, limit));
    const auto* renewed = std::get_if<Renewed>(&renewal);
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
                         .outcome = std::string(name_of(Outcome::lost)),
                         .message = runner_killed_text(false, released)};
  notify(request, context, &held, news_of(report, std::chrono::ceil<Millis>(context.clock.now() - started)), nullptr,
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
  std::optional<Instant> started;
  if (job) {
    started = job->started;
    held.sessions.front().set_fence(fence_in(job->late_value));
  }
  const bool released = release_for_runner(request, context, held.sessions, started);
  if (job) {
    tell_for_runner(request, context, held, *started, released);
  }
  return released;
}

}  // namespace

LockSet::LockSet(const RunRequest& request, const RunContext& context, const std::optional<std::string>& path)
{
  const Owner owner = Owner::fresh(context.rng, ::getpid());
  std::vector<LockSpec> specs = specs_of(request);
  if (!request.shards.empty()) {
    sessions.emplace_back(request, context, store, std::move(specs), owner);
  } else {
    sessions.reserve(specs.size());
    for (LockSpec& spec : specs) {
      sessions.emplace_back(request, context, store, std::vector{std::move(spec)}, owner);
    }
  }
  if (!path) {
    return;
  }
  prepared_job.emplace(
      request, context, *path,
      [this, &request, &context](const std::optional<OrphanedJob>& job) {
        return end_for_runner(request, context, *this, job);
      },
      [this, &request, &context, lease = LeaseTerm{.from = Instant{}, .length = request.ttl}]() mutable {
        lease.from = lease.from == Instant{} ? context.clock.now() : lease.from;  // the runner's renewals are not known
        return keep_for_runner(request, context, sessions, lease);
      });
}

std::vector<HeldLock> LockSet::held_locks() const
{
  std::vector<HeldLock> locks;
  for (const LockSession& session : sessions) {
    locks.push_back(session.held());
  }
  return locks;
}

const LockSession& LockSet::first_to_expire() const
{
  return *std::min_element(sessions.begin(), sessions.end(), expires_earlier);
}

}  // namespace rlock
