// SPDX-License-Identifier: Apache-2.0
#include "run/lock_session.h"

#include <algorithm>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "lock/reach_server.h"
#include "run/force.h"
#include "run/left_keeper.h"
#include "run/release.h"

namespace rlock {
namespace {

constexpr Millis time_to_check_release{250};  // the job is stopped only then
constexpr Millis time_to_note_skip{500};      // a failure does not change how rlock ends

// The locks of one owner have one presence, which a release by another process removes.
Error several_refused(const RunRequest& request)
{
  return {ErrorCode::config, "acquire of several keys with --lease: on the server " + request.server.shown() +
                                 " the release of one of them would end all (use --pid, whose keeper has them)"};
}

// A job must not depend on a keeper, which may be killed.
Error lease_refused(const RunRequest& request, Millis longest)
{
  const std::string asked = show(request.ttl);
  return {ErrorCode::config, "--lease " + asked + ": the longest lease that " + request.server.shown() +
                                 " gives a job is " + show(longest) + " (try --max-runtime " + asked + " instead)"};
}

}  // namespace

LockSession::LockSession(const RunRequest& request, const RunContext& context, std::unique_ptr<LockStore>& store,
                         std::vector<LockSpec> any_of, Owner owner)
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

std::optional<Shard> LockSession::shard() const
{
  if (m_request.shards.empty()) {
    return std::nullopt;
  }
  const bool is_named = !m_request.shard_names.empty();
  return Shard{.number = m_which, .name = is_named ? m_request.shard_names[m_which] : ""};
}

HeldLock LockSession::held() const
{
  return {.name = name(), .hold = m_hold, .lease = m_lease_length, .shard = shard()};
}

Result<Done> LockSession::open(const WaitPolicy& policy, StopToken stop, WaitObserver& observer)
{
  if (!m_store) {  // open_store connects to no server but local:
    ASSIGN_OR_RETURN(m_store, reach_server(policy, m_context.clock, m_context.rng, stop, observer,
                                           [&] { return open_store(m_request.server, m_context.clock, stop); }));
  }
  return Done{};
}

bool LockSession::is_of_outer_run(const WaitPolicy& policy, StopToken stop, WaitObserver& observer)
{
  const std::vector<Ancestor> outer = ancestors();
  if (outer.empty() || !open(policy, stop, observer)) {
    return false;
  }
  return std::ranges::any_of(outer, [&](const Ancestor& each) {
    const CallLimits limit{.deadline = m_context.clock.now() + policy.server_timeout, .stop = stop};
    const auto answer = m_store->renew(m_any_of[each.which], each.owner, {.only_checks = true}, limit);
    if (!answer) {
      m_store->drop_connection();
    }
    return answer && std::holds_alternative<Renewed>(*answer);
  });
}

Result<LockSession::Acquired> LockSession::acquire(const WaitPolicy& policy, StopToken stop, WaitObserver& observer)
{
  if (const auto opened = open(policy, stop, observer); !opened) {
    return opened.error().code == ErrorCode::interrupted ? Result<Acquired>(Interrupted{}) : opened.error();
  }
  const bool is_token_for_several =
      m_request.held_for == HeldFor::script && m_request.names.size() > 1 && !m_request.automatic;
  if (is_token_for_several && m_store->traits().ends_holds_with_clients) {
    return several_refused(m_request);
  }
  WaitPolicy own_policy = policy;
  own_policy.takes_message = may_begin_on_message();
  std::optional<CancelHolder> cancel;
  if (m_request.cancel_in_progress) {
    own_policy.stopper = &cancel.emplace(*m_store, spec(), own_policy.server_timeout, m_context.clock, m_context.log);
  }
  ASSIGN_OR_RETURN(auto entry, enter(*m_store, m_any_of, m_hold.owner, ancestors(), own_policy, m_context.clock,
                                     m_context.rng, stop, observer));
  if (auto* entered = std::get_if<Entered>(&entry)) {
    const bool is_for_job = m_request.held_for == HeldFor::job;
    if (const auto lasts = m_request.automatic || !is_for_job ? std::nullopt : m_store->lasts_without_keeper()) {
      const CallLimits limit{.deadline = m_context.clock.now() + give_back_timeout, .stop = StopToken::never()};
      [[maybe_unused]] const auto released = m_store->release(m_any_of[entered->taken.which], entered->hold,
                                                              {.result = {.outcome = Outcome::unused}}, limit);
      return lease_refused(m_request, *lasts);
    }
    begin(std::move(*entered));
    return Acquired{Done{}};
  }
  if (const auto* done = std::get_if<AlreadyDone>(&entry)) {
    return Acquired{*done};
  }
  const auto* timed_out = std::get_if<TimedOut>(&entry);
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

bool LockSession::was_released()
{
  const auto answer =
      release({}, {.deadline = m_context.clock.now() + time_to_check_release, .stop = StopToken::never()});
  const bool released = answer && was_released_before(*answer);
  if (released) {
    m_lease->discard_event();
  }
  return released;
}

// Beside many other holders, of permits or readers, a full log has forgotten the grant.
bool LockSession::is_grant_missing(const CallLimits& limit)
{
  const EventLogQuery query{.name = name(), .after = {}};
  const auto logs = m_store->read_logs({&query, 1}, limit);
  return logs && logs->front().size() < static_cast<std::size_t>(event_count) &&
         std::ranges::none_of(logs->front(),
                              [&](const EventLogEntry& each) { return each.taker == m_hold.owner.text(); });
}

Result<std::vector<PastRun>> LockSession::past_runs(const PerAnswer& limits)
{
  auto known = m_store->past_runs({&name(), 1}, LogPart::all, limits);
  return known ? Result(std::move(known->front().runs)) : known.error();
}

void LockSession::keep_runs(bool succeeded)
{
  const bool is_nested = m_depth > 1;
  if (!is_nested) {
    rlock::keep_runs(*m_store, name(), spec().who.history, succeeded, m_request.server.timeout, m_context.clock,
                     m_context.rng, m_context.log);
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
  [[maybe_unused]] const auto noted = m_store->note_skipped(spec(), m_hold.owner, run, limit);
}

Result<std::optional<Millis>> LockSession::leave_keeper()
{
  const auto lasts = m_store->lasts_without_keeper();
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

}  // namespace rlock
