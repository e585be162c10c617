// SPDX-License-Identifier: Apache-2.0
#include "run/lock_session.h"

#include "base/text.h"
#include "lock/abilities.h"
#include "lock/server_wait.h"
#include "run/cancel_holder.h"
#include "run/environment.h"
#include "run/request_policy.h"

#include <utility>

namespace rlock {

LockSession::LockSession(const RunRequest& request, const RunContext& context, std::vector<LockSpec> any_of,
                         Owner owner)
    : m_request(request), m_context(context), m_any_of(std::move(any_of)), m_hold(std::move(owner))
{
}

std::string LockSession::display_name() const
{
  return rlock::display_name(m_request.shards.empty() ? name() : *m_request.names.begin(), m_request.shards.size());
}

std::optional<std::size_t> LockSession::shard() const
{
  return m_request.shards.empty() ? std::nullopt : std::optional{m_which};
}

Result<LockSession::Outcome> LockSession::acquire(const WaitPolicy& policy, StopToken stop, WaitObserver& observer)
{
  auto store = reach_server(policy, m_context.clock, m_context.rng, stop, observer,
                            [&] { return open_store(m_request.server, m_context.clock, stop); });
  if (!store) {
    return store.error().code == ErrorCode::interrupted ? Result<Outcome>(Interrupted{}) : store.error();
  }
  if (m_request.once && (*store)->once_memory() == nullptr) {
    return not_offered("once", m_request.server.shown());
  }
  m_store = *std::move(store);
  WaitPolicy own_policy = policy;
  own_policy.takes_message = may_begin_on_message();
  std::optional<CancelHolder> cancel;
  if (m_request.cancel_in_progress) {
    if (m_store->force_unlock() == nullptr) {
      return not_offered("run --cancel-in-progress", m_request.server.shown());
    }
    own_policy.stopper = &cancel.emplace(*m_store, spec(), m_request.server.timeout, m_context.clock, m_context.log);
  }
  auto entry =
      enter(*m_store, m_any_of, m_hold.owner, ancestors(), own_policy, m_context.clock, m_context.rng, stop, observer);
  if (!entry) {
    return entry.error();
  }
  if (auto* entered = std::get_if<Entered>(&*entry)) {
    begin(std::move(*entered));
    return Outcome{Done{}};
  }
  if (const auto* done = std::get_if<AlreadyDone>(&*entry)) {
    return Outcome{*done};
  }
  const auto* timed_out = std::get_if<TimedOut>(&*entry);
  return timed_out != nullptr ? Outcome{*timed_out} : Outcome{Interrupted{}};
}

// Whether the message of a hand-over may start the job. False if the server's answer says more than the message: whether another
// job has succeeded (once), or how many replicas have the lock (sync). False for a fixed lease, which counts from the answer, and
// for several locks, because the short lease of the message would hide which lease ends first.
bool LockSession::may_begin_on_message() const
{
  return m_request.automatic && !m_request.once && m_request.sync == 0 && m_request.names.size() == 1;
}

void LockSession::begin(Entered entered)
{
  m_hold = std::move(entered.hold);
  m_which = entered.taken.which;
  m_grant = entered.taken.grant;
  m_lease = std::make_unique<Lease>(*m_store,
                                    GrantedLock{.spec = spec(),
                                                .owner = m_hold.owner,
                                                .lease = entered.taken.grant.lease,
                                                .is_claim = entered.taken.is_claim,
                                                .listener = std::move(entered.taken.listener)},
                                    m_request.kill_after, m_context.clock, m_context.log);
  if (m_hold.is_nested()) {
    m_context.log.detail(
        "re-entered " + printable(name().text()) + ", which is now held " + std::to_string(m_grant.count) + " times",
        {.event = "reentered", .key = name().text()});
  }
}

// A process below the job of one of the shards holds what it asks for. flock(1) does not re-enter locks.
std::vector<Ancestor> LockSession::ancestors() const
{
  return m_request.compatibility == Compatibility::flock ? std::vector<Ancestor>{}
                                                         : ancestors_with(m_request.environment, m_any_of);
}

void LockSession::stop_threads()
{
  m_lease->stop_watchdog();
  m_store->rest();
}

bool LockSession::was_released(const CallLimits& limit)
{
  m_lease->stop_watchdog();
  const auto answer = release({}, limit);
  const bool released = answer && !std::holds_alternative<NotHeld>(*answer);
  if (released) {
    m_lease->discard_event();
  }
  return released;
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
  rlock::note_skipped(*m_store, spec(), m_hold.owner, run, limit);
}

Result<Release> LockSession::release(const ReleaseOptions& options, const CallLimits& limit)
{
  return m_store->release(spec(), m_hold, options, limit);
}

}  // namespace rlock
