// SPDX-License-Identifier: Apache-2.0
#include "run/lock_set.h"

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <iterator>
#include <span>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "lock/abilities.h"
#include "lock/kept_runs.h"
#include "lock/lease_keeping.h"
#include "lock/reach_server.h"
#include "process/guardian.h"
#include "process/terminal.h"
#include "run/environment.h"
#include "run/force.h"
#include "run/keeper.h"
#include "run/release.h"
#include "run/report.h"
#include "run/run.h"

namespace rlock {
namespace {

constexpr Millis time_to_note_skip{500};  // a failure does not change how rlock ends
constexpr Millis time_to_keep_runs{1000};
// One of so many runs that succeed copies the runs of the event log, which has the last 64 runs or more. So one of 100 000 runs is
// forgotten before it is copied.
constexpr std::uint64_t runs_for_a_copy = 6;

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
          .history = request.history,
          .every = request.every,
          .freeze = request.freeze};
}

// The job must start with most of its lease left, and WAIT must answer before the connection times out.
Sync sync_of(const RunRequest& request)
{
  return {.replicas = request.sync, .within = std::min(request.server.timeout / 2, request.ttl / 4)};
}

// A spec for each shard, or for each lock.
std::vector<LockRequest> specs_of(const RunRequest& request)
{
  const auto period = request.per ? std::optional(period_at(*request.per, wall_clock_ms())) : std::nullopt;
  const LockRequest common{.name = request.name(),
                           .kind = request.kind,
                           .ttl = request.ttl,
                           .who = holder_info(request),
                           .once = request.once,
                           .sync = sync_of(request),
                           .again = request.again,
                           .beside = request.beside,
                           .period = period,
                           .ends_at = request.ends_at};
  std::vector<LockRequest> specs;
  const auto add = [&](const LockName& name) { specs.emplace_back(common).name = name; };
  if (request.shards.empty()) {
    std::ranges::for_each(request.names, add);
  } else {
    std::ranges::for_each(request.shards, add);
  }
  return specs;
}

std::string shown_names(const RunRequest& request)
{
  std::string text;
  for (const LockName& name : request.names) {
    text += (text.empty() ? "" : ", ") + printable(name.text());
  }
  return text;
}

bool expires_earlier(const LockSession& a, const LockSession& b)
{
  return a.lease().budget().valid_until() < b.lease().budget().valid_until();
}

// A job must not depend on a keeper, which may be killed.
Error lease_refused(const RunRequest& request, Millis longest)
{
  const std::string asked = show(request.ttl);
  return {ErrorCode::config, "--lease " + asked + ": the longest lease that " + request.server.shown() +
                                 " gives a job is " + show(longest) + " (try --max-runtime " + asked + " instead)"};
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
  std::vector<LockRequest> specs = specs_of(request);
  if (!request.shards.empty()) {
    sessions.emplace_back(request, context, store, std::move(specs), owner);
  } else {
    sessions.reserve(specs.size());
    for (LockRequest& spec : specs) {
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

LockSession::LockSession(const RunRequest& request, const RunContext& context, std::unique_ptr<LockStore>& store,
                         std::vector<LockRequest> any_of, Owner owner)
    : m_request(request),
      m_context(context),
      m_any_of(std::move(any_of)),
      m_hold(std::move(owner)),
      m_lease_length(request.ttl),
      m_store(store)
{
}

std::string LockSession::display_name() const
{
  const std::size_t shards = m_request.shards.size();
  return shards == 0 ? printable(name().text())
                     : printable(m_request.name().text()) + " (" + std::to_string(shards) + " shards)";
}

// Another shard may come free.
bool LockSession::waits_for_itself(const Busy& busy) const
{
  return m_request.compatibility == Compatibility::own && m_any_of.size() == 1 &&
         rlock::waits_for_itself(m_request.kind, busy);
}

std::optional<std::size_t> LockSession::shard() const
{
  return m_request.shards.empty() ? std::nullopt : std::optional{m_which};
}

HeldLock LockSession::held() const
{
  return {.name = name(), .hold = m_hold, .lease = m_lease_length, .shard = shard()};
}

Result<LockSession::Acquired> LockSession::acquire(const WaitPolicy& policy, StopToken stop, WaitObserver& observer)
{
  if (!m_store) {
    auto opened = reach_server(policy, m_context.clock, m_context.rng, stop, observer,
                               [&] { return open_store(m_request.server, m_context.clock, stop); });
    if (!opened) {
      return opened.error().code == ErrorCode::interrupted ? Result<Acquired>(Interrupted{}) : opened.error();
    }
    m_store = *std::move(opened);
  }
  if (m_request.once && m_store->once_memory() == nullptr) {
    return not_offered("once", m_request.server.shown());
  }
  if (m_request.min_hold > Millis{0} && !m_store->traits().keeps_after_release) {
    return not_offered("run --min-hold", m_request.server.shown(), nothing_kept_after_release);
  }
  const bool is_for_job = m_request.held_for == HeldFor::job;
  if (!is_for_job && !m_request.automatic && !m_store->traits().has_token_leases) {
    return not_offered(m_request.held_for == HeldFor::script ? "acquire without --pid" : "freeze",
                       m_request.server.shown(), no_token_leases);
  }
  WaitPolicy own_policy = policy;
  own_policy.takes_message = may_begin_on_message();
  std::optional<CancelHolder> cancel;
  if (m_request.cancel_in_progress) {
    if (m_store->force_unlock() == nullptr) {
      return not_offered("run --cancel-in-progress", m_request.server.shown());
    }
    own_policy.stopper = &cancel.emplace(*m_store, spec(), own_policy.server_timeout, m_context.clock, m_context.log);
  }
  auto entry =
      enter(*m_store, m_any_of, m_hold.owner, ancestors(), own_policy, m_context.clock, m_context.rng, stop, observer);
  if (!entry) {
    return entry.error();
  }
  if (auto* entered = std::get_if<Entered>(&*entry)) {
    if (const auto lasts = m_request.automatic || !is_for_job ? std::nullopt : lasts_without_keeper(*m_store)) {
      const CallLimits limit{.deadline = m_context.clock.now() + give_back_timeout, .stop = StopToken::never()};
      [[maybe_unused]] const auto released = m_store->release(m_any_of[entered->taken.which], entered->hold,
                                                              {.result = {.outcome = Outcome::unused}}, limit);
      return lease_refused(m_request, *lasts);
    }
    begin(std::move(*entered));
    return Acquired{Done{}};
  }
  if (const auto* done = std::get_if<AlreadyDone>(&*entry)) {
    return Acquired{*done};
  }
  const auto* timed_out = std::get_if<TimedOut>(&*entry);
  return timed_out != nullptr ? Acquired{*timed_out} : Acquired{Interrupted{}};
}

// Whether the message of a hand-over may start the job. False if the server's answer says more than the message: whether another
// job has succeeded (once), or how many replicas have the lock (sync). False for a fixed lease, which counts from the answer, and
// for several locks, because the short lease of the message would hide which lease ends first. False for a script, which nothing
// stops as surely as a job.
bool LockSession::may_begin_on_message() const
{
  return m_request.held_for == HeldFor::job && m_request.automatic && !m_request.once && m_request.sync == 0 &&
         m_request.names.size() == 1;
}

void LockSession::begin(Entered entered)
{
  m_hold = std::move(entered.hold);
  m_which = entered.taken.which;
  m_fence = entered.taken.grant.fence;
  m_depth = std::max<std::int64_t>(entered.taken.grant.count, 1);
  if (!entered.taken.is_claim) {
    m_lease_length = entered.taken.grant.lease.length;
  }
  m_lease = std::make_unique<Lease>(*m_store,
                                    GrantedLock{.spec = spec(),
                                                .owner = m_hold.owner,
                                                .lease = entered.taken.grant.lease,
                                                .is_claim = entered.taken.is_claim,
                                                .listener = std::move(entered.taken.listener)},
                                    m_request.kill_after, m_context.clock);
  const Millis lease = entered.taken.grant.lease.length;
  if (m_request.automatic && !m_hold.is_nested() && m_store->traits().ends_holds_with_clients &&
      lease != m_request.ttl) {
    m_context.log.detail("the server gives a lease of " + show(lease) + " where --ttl is " + show(m_request.ttl),
                         {.event = "lease", .key = name().text()});
  }
  if (m_hold.is_nested()) {
    m_context.log.detail(
        "re-entered " + printable(name().text()) + ", which is now held " + std::to_string(m_depth) + " times",
        {.event = "reentered", .key = name().text()});
  }
}

// A process below the job of one of the shards holds what it asks for. flock(1) does not re-enter locks, and a freeze waits for them.
std::vector<Ancestor> LockSession::ancestors() const
{
  const bool reenters = m_request.compatibility == Compatibility::own && m_request.held_for != HeldFor::nobody;
  return reenters ? ancestors_with(m_request.environment, m_any_of) : std::vector<Ancestor>{};
}

bool LockSession::was_released(const CallLimits& limit)
{
  const auto answer = release({}, limit);
  const bool released = answer && was_released_before(*answer);
  if (released) {
    m_lease->discard_event();
  }
  return released;
}

// Beside many other holders, of permits or readers, a full log has forgotten the grant.
bool LockSession::is_grant_missing(const CallLimits& limit)
{
  EventLog* const log = m_store->event_log();
  if (log == nullptr) {
    return false;
  }
  const EventLogQuery query{.name = name(), .after = {}};
  const auto logs = log->read_logs({&query, 1}, limit);
  return logs && logs->front().size() < static_cast<std::size_t>(event_count) &&
         std::ranges::none_of(logs->front(),
                              [&](const EventLogEntry& each) { return each.taker == m_hold.owner.text(); });
}

Result<std::vector<PastRun>> LockSession::past_runs(const PerAnswer& limits)
{
  RunHistory* const history = m_store->run_history();
  if (history == nullptr) {
    return std::vector<PastRun>{};
  }
  auto known = history->past_runs({&name(), 1}, LogPart::all, limits);
  return known ? Result(std::move(known->front().runs)) : known.error();
}

void LockSession::keep_runs(bool succeeded)
{
  const std::optional<Millis> memory = spec().who.history;
  RunHistory* const history = m_store->run_history();
  const bool is_nested = m_depth > 1;
  if (history == nullptr || is_nested || !must_keep_runs(memory) ||
      (succeeded && below(m_context.rng, runs_for_a_copy) != 0)) {
    return;
  }
  const Millis timeout = std::min(time_to_keep_runs, m_request.server.timeout);
  const CallLimits whole{.deadline = m_context.clock.now() + timeout, .stop = StopToken::never()};
  if (const auto kept =
          history->keep_runs(name(), *memory, {.clock = m_context.clock, .timeout = timeout, .whole = whole});
      !kept) {
    m_context.log.detail("cannot keep the history of " + printable(name().text()) + ": " + kept.error().text);
  }
}

void LockSession::note_skipped(const SkippedRun& run)
{
  const Millis timeout = std::min(time_to_note_skip, m_request.server.timeout);
  const CallLimits limit{.deadline = m_context.clock.now() + timeout, .stop = m_context.signals.stop()};
  if (!m_store) {  // the command was not found, so no server was asked
    if (!ancestors().empty()) {
      return;  // a nested run is none
    }
    ServerSpec server = m_request.server;
    server.timeout = timeout;
    server.starts_local = false;  // it would have to run for this note only
    auto opened = open_store(server, m_context.clock, m_context.signals.stop());
    if (!opened) {
      return;
    }
    m_store = *std::move(opened);
  }
  if (RunHistory* const history = m_store->run_history()) {
    [[maybe_unused]] const auto noted = history->note_skipped(spec(), m_hold.owner, run, limit);
  }
}

Result<std::optional<Millis>> LockSession::leave_keeper()
{
  const auto lasts = lasts_without_keeper(*m_store);
  const auto left = leave_keeper_of_leases(*m_store, name());
  return left ? Result(lasts) : left.error();
}

void LockSession::leave_keeper_of_released()
{
  if (const auto lasts = leave_keeper(); !lasts || *lasts) {
    m_context.log.detail(lasts ? kept_by_keeper(name(), **lasts) : lasts.error().text,
                         {.event = "keeper", .key = name().text()});
  }
}

Result<Release> LockSession::release(const ReleaseOptions& options, const CallLimits& limit)
{
  return m_store->release(spec(), m_hold, options, limit);
}

namespace {

constexpr StopTimes already_over{};  // no job starts with this deadline

bool are_same(const HeldLock& one, const HeldLock& other)
{
  return one.name == other.name && one.hold.token() == other.hold.token() && one.lease == other.lease;
}

}  // namespace

PreparedJob::PreparedJob(const RunRequest& request, const RunContext& context, std::string path,
                         std::function<bool(const std::optional<OrphanedJob>&)> release,
                         std::function<std::optional<Instant>()> keep)
    : m_request(request),
      m_context(context),
      m_path(std::move(path)),
      m_release_for_runner(std::move(release)),
      m_keep_for_runner(std::move(keep)),
      m_shared_deadline(already_over)
{
}

// Whether a lost lock does not stop the job (--on-lost warn). The end of a fixed lease always does.
bool PreparedJob::warns_only() const { return m_request.on_lost == OnLost::warn && m_request.automatic; }

Result<Job> PreparedJob::fork_job(const std::vector<HeldLock>& locks, Instant earliest_last_resort)
{
  const JobSpec spec{
      .path = m_path,
      .argv = m_request.argv,
      .lock_names = shown_names(m_request),
      .environment = job_environment(m_request.environment, {.held = locks, .server = m_request.server.for_job()}),
      .late_variable = std::string(fence_variable),
      .stop_signal = m_request.stop_signal,
      .kill_after = m_request.kill_after,
      .leftovers = m_request.leftovers,
      .max_runtime = m_request.max_runtime,
      .earliest_last_resort = earliest_last_resort,
      .release_for_runner = m_release_for_runner,
      .keep_for_runner = m_keep_for_runner};
  return Job::prepare(spec, m_context.signals, m_shared_deadline);
}

// A guardian that was killed, by the last resort or by another process, has left its child to this process.
void PreparedJob::discard()
{
  if (m_job && !m_job->is_ready()) {
    m_job->take_over();
  }
  m_job.reset();
}

void PreparedJob::discard_unusable()
{
  if (m_job && (m_context.clock.now() >= m_usable_until || !m_job->is_ready())) {
    discard();
  }
}

void PreparedJob::prepare(const std::vector<HeldLock>& locks) { prepare(locks, far_future); }

void PreparedJob::prepare_for_first_request(const std::vector<HeldLock>& locks)
{
  const Instant now = m_context.clock.now();
  prepare(locks, stop_times(LeaseBudget({.from = now, .length = m_request.ttl})).last_resort);
  m_usable_until = now + m_request.ttl / 2;
}

void PreparedJob::request_refused()
{
  if (m_usable_until != far_future) {
    discard();
    m_usable_until = far_future;
  }
}

void PreparedJob::prepare(const std::vector<HeldLock>& locks, Instant earliest_last_resort)
{
  discard_unusable();
  if (m_job || Terminal().is_shared()) {
    return;
  }
  if (auto job = fork_job(locks, earliest_last_resort)) {
    m_job.emplace(*std::move(job));
    m_prepared_under = locks;
    m_earliest_last_resort = earliest_last_resort;
    m_usable_until = far_future;
  }
}

Result<Job> PreparedJob::start(const std::vector<HeldLock>& locks, std::uint64_t fence)
{
  discard_unusable();
  if (m_usable_until != far_future && m_shared_deadline.times().last_resort < m_earliest_last_resort) {
    discard();  // the lease is shorter than the one that was asked for
  }
  if (!std::equal(locks.begin(), locks.end(), m_prepared_under.begin(), m_prepared_under.end(), are_same)) {
    m_job.reset();
  }
  if (!m_job) {
    ASSIGN_OR_RETURN(auto job, fork_job(locks, far_future));
    m_job.emplace(std::move(job));
  }
  Job job = *std::move(m_job);
  m_job.reset();
  const auto started = job.go(std::to_string(fence));
  return started ? Result<Job>(std::move(job)) : started.error();
}

void PreparedJob::move_deadline(const LeaseBudget& lease) { m_shared_deadline.move_to(stop_times(lease)); }

StopTimes PreparedJob::stop_times(const LeaseBudget& lease) const
{
  return warns_only() ? never_stopped : rlock::stop_times(lease, m_request.kill_after);
}

}  // namespace rlock
