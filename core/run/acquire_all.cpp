// SPDX-License-Identifier: Apache-2.0
#include "run/acquire_all.h"

#include <algorithm>
#include <chrono>
#include <span>
#include "base/text.h"
#include "lease/lease.h"
#include "run/release.h"
#include "run/verdict.h"
#include "run/wait_message.h"

namespace rlock {
namespace {

constexpr Millis release_time{500};  // for the release of what was held, when the server does not answer
constexpr int renewal_attempts = 3;  // before the job begins, each on a fresh connection
constexpr Millis retry_pause{300};   // the longest pause_between_attempts

// The locks that are held already. Renews them while another one is waited for. With one lock all of this does nothing.
class HeldLocks {
 public:
  HeldLocks(const RunRequest& request, const RunContext& context, StopToken stop)
      : m_request(request), m_context(context), m_stop(stop)
  {
    const bool are_several = request.names.size() > 1;
    if (are_several) {
      m_any_wake.emplace();
      m_any_wake->add(stop);
      m_any_wake->add(m_loss.emplace().token());
    }
  }

  // Readable when the caller wants a stop, or when one of the locks was lost.
  [[nodiscard]] StopToken stop() const { return m_any_wake ? m_any_wake->token() : m_stop; }

  void add(LockSession& session)
  {
    m_sessions.push_back(&session);
    m_leases.add(session.lease());
  }

  [[nodiscard]] std::size_t size() const { return m_sessions.size(); }
  [[nodiscard]] Instant due() const { return m_leases.due(); }    // when watch() must be called
  [[nodiscard]] int fd() const { return m_leases.message_fd(); }  // readable: the same
  void watch()
  {
    m_leases.watch();
    request_stop_if_lost();
  }
  // Before the next lock is asked for.
  void watch_all_due()
  {
    m_leases.watch_all_due(stop());
    request_stop_if_lost();
  }
  void stop_watching() { m_leases.stop_watchdog(); }

  // The text of the first known loss; nullopt: there is none.
  [[nodiscard]] std::optional<std::string> loss()
  {
    Lease* const lost = m_leases.with_event();
    return lost != nullptr ? std::optional{loss_text(*lost->event(), printable(lost->spec().name.text()))}
                           : std::nullopt;
  }

  // Renews each lease that grew old while other locks were waited for, which proves that the lock is held and lets a fixed lease count
  // from here. Afterwards every lease is young enough for a job to begin, or there is a loss. ErrorCode::server_not_ready: the server is too slow for such leases.
  Result<Done> prepare_for_job()
  {
    stop_watching();
    for (LockSession* session : m_sessions) {
      Lease& lease = session->lease();
      const bool is_young = session == m_sessions.back() || m_context.clock.now() < lease.watch_from();
      if (!is_young && !lease.event()) {
        renew(lease);
      }
      if (lease.event()) {
        return Done{};
      }
    }
    const Instant now = m_context.clock.now();
    const bool all_are_young = std::ranges::all_of(
        m_sessions, [&](const LockSession* session) { return session->lease().budget().may_begin(now); });
    return all_are_young ? Result(Done{}) : too_slow();
  }

 private:
  void request_stop_if_lost()
  {
    if (m_leases.with_event() != nullptr) {
      m_loss->request();
    }
  }

  void renew(Lease& lease)
  {
    const Instant give_up = lease.budget().signal_at(m_request.kill_after);
    for (int i = 0; i < renewal_attempts && !m_stop.requested(); ++i) {
      const Instant now = m_context.clock.now();
      lease.renew({.deadline = std::min(now + m_request.server.timeout, std::max(give_up, now)), .stop = m_stop});
      const bool is_unconfirmed = lease.event() && std::holds_alternative<Unconfirmed>(*lease.event());
      if (!is_unconfirmed) {
        return;
      }
    }
  }

  const RunRequest& m_request;
  const RunContext& m_context;
  const StopToken m_stop;
  std::optional<AnyStop> m_any_wake;  // these two only for several locks
  std::optional<StopSource> m_loss;
  // This thread renews: it asks for the next lock on the same store, and the job must be forked from a process with one thread.
  LeaseGroup m_leases{{.interrupt = m_stop, .has_thread = false}, m_context.clock, m_context.log};
  std::vector<LockSession*> m_sessions;
};

// Observes the wait for one lock: shows the wait to the user, renews the held locks, and prepares the job.
class Observer final : public WaitMessage {
 public:
  Observer(const RunContext& context, const LockSession& session, HeldLocks& held, LockSet& lock_set, bool may_prepare)
      : WaitMessage(session.display_name(), context.clock, context.log),
        m_clock(context.clock),
        m_session(session),
        m_held(held),
        m_lock_set(lock_set),
        m_may_prepare(may_prepare)
  {
  }

  [[nodiscard]] bool was_refused() const { return m_was_refused; }
  void refused(const Busy& busy) override
  {
    m_was_refused = true;
    discard_job_for_first_request();
    WaitMessage::refused(busy);
  }
  bool is_hopeless(const Busy& busy) override { return m_session.waits_for_itself(busy); }
  [[nodiscard]] Instant due() const override { return std::min(WaitMessage::due(), m_held.due()); }
  void tick() override
  {
    if (m_clock.now() >= WaitMessage::due()) {
      WaitMessage::tick();
    }
    if (m_clock.now() >= m_held.due() || StopToken(m_held.fd()).requested()) {
      m_held.watch();
    }
  }
  [[nodiscard]] int fd() const override { return m_held.fd(); }
  void next_in_line() override
  {
    if (m_may_prepare) {
      m_lock_set.prepared_job->prepare(m_lock_set.held_locks());
    }
  }
  void server_failed(const Error& error) override
  {
    discard_job_for_first_request();
    WaitMessage::server_failed(error);
  }

 private:
  // It could only start until half of its ttl has passed.
  void discard_job_for_first_request()
  {
    if (m_lock_set.prepared_job) {
      m_lock_set.prepared_job->discard_after_refusal();
    }
  }

  const Clock& m_clock;
  const LockSession& m_session;
  HeldLocks& m_held;
  LockSet& m_lock_set;
  const bool m_may_prepare;
  bool m_was_refused = false;
};

class Acquisition {
 public:
  Acquisition(const RunRequest& request, const RunContext& context, const WaitPolicy& policy, StopToken stop,
              LockSet& lock_set)
      : m_request(request), m_context(context), m_policy(policy), m_lock_set(lock_set), m_held(request, context, stop)
  {
  }

  Result<AcquireAllResult> run()
  {
    Result<AcquireAllResult> result = acquire();
    m_held.stop_watching();
    if (auto* const retry = result ? std::get_if<RetryNeeded>(&*result) : nullptr) {
      retry->was_in_line = m_policy.was_in_line || m_waited;
    }
    if (!result || !std::holds_alternative<AllAcquired>(*result)) {
      take_back(m_request, m_context, std::span(m_lock_set.sessions).first(m_held.size()), release_time);
    }
    if (m_busy != nullptr && m_request.held_for != HeldFor::nobody) {
      m_busy->note_skipped({.waited = std::chrono::ceil<Millis>(m_context.clock.now() - m_began), .newer = m_newer});
    }
    return result;
  }

 private:
  Result<AcquireAllResult> acquire()
  {
    for (LockSession& session : m_lock_set.sessions) {
      // The environment of the job names the shard, so the job of a shard is prepared after the grant.
      const bool may_prepare = m_lock_set.prepared_job && &session == &m_lock_set.sessions.back() && !session.shard();
      Observer observer(m_context, session, m_held, m_lock_set, may_prepare);
      if (may_prepare && is_likely_granted_at_once()) {
        m_lock_set.prepared_job->prepare_for_first_request(m_lock_set.held_locks());
      }
      if (needs_one_token() && m_held.size() == 0) {
        RETURN_IF_ERROR(refuse_locks_of_outer_run(observer));
      }
      m_held.watch_all_due();
      const auto outcome = session.acquire(policy(), m_held.stop(), observer);
      m_waited = m_waited || observer.was_refused();
      if (!outcome) {
        const bool server_was_there = m_held.size() > 0 && is_passing(outcome.error().code);
        return server_was_there ? Result<AcquireAllResult>(RetryNeeded{.why = outcome.error().text}) : outcome.error();
      }
      if (const auto* timed_out = std::get_if<TimedOut>(&*outcome)) {
        m_busy = &session;
        if (const auto& replaced = timed_out->last.replaced) {
          m_newer = replaced->by ? encode(*replaced->by) : std::string(unknown_newer);
        }
        return AcquireAllResult{LockBusy{.display_name = session.display_name(),
                                         .last = timed_out->last,
                                         .waits_for_itself = session.waits_for_itself(timed_out->last)}};
      }
      if (const auto* done = std::get_if<AlreadyDone>(&*outcome)) {
        return AcquireAllResult{*done};
      }
      if (std::holds_alternative<Interrupted>(*outcome)) {
        return interrupted();
      }
      m_held.add(session);
      if (needs_one_token() && session.hold().is_nested()) {
        return held_by_outer_run(session);
      }
    }
    return finish();
  }

  // Before the first wait, which may be long.
  Result<Done> refuse_locks_of_outer_run(Observer& observer)
  {
    for (LockSession& session : m_lock_set.sessions) {
      if (session.is_of_outer_run(policy(), m_held.stop(), observer)) {
        return held_by_outer_run(session);
      }
    }
    return Done{};
  }

  static Error held_by_outer_run(const LockSession& session)
  {
    return {ErrorCode::usage, "an outer run holds " + printable(session.name().text()) +
                                  ", by another token than the one for all of these locks (leave out this lock, which "
                                  "the outer run keeps)"};
  }

  // Then the job is prepared while the server is connected to and asked. Otherwise the work would often be in vain: for a
  // caller that does not wait, a job that another host may have done, a lock of an ancestor, and several answers.
  [[nodiscard]] bool is_likely_granted_at_once() const
  {
    const bool is_nested = !environment_value(m_request.environment, held_locks_variable).empty();
    return m_policy.waits && !m_request.once && !is_nested && m_request.names.size() == 1 &&
           m_request.server.endpoints.size() == 1;
  }

  // The caller of rlock acquire gets one token for all.
  [[nodiscard]] bool needs_one_token() const
  {
    return m_request.held_for == HeldFor::script && m_request.names.size() > 1;
  }

  // A request that failed may have been granted to an owner that was not used again.
  [[nodiscard]] bool have_one_token() const
  {
    const std::string token = m_lock_set.sessions.front().hold().token();
    return std::ranges::all_of(m_lock_set.sessions,
                               [&](const LockSession& session) { return session.hold().token() == token; });
  }

  // While locks are held, a request for the next one must leave time for their renewals.
  [[nodiscard]] WaitPolicy policy() const
  {
    WaitPolicy policy = m_policy;
    if (m_held.size() > 0 && m_request.sync == 0) {
      const Millis longest = renewal_policy(m_request.ttl, m_request.kill_after).longest_try;
      policy.server_timeout = std::min(policy.server_timeout, longest);
    }
    return policy;
  }

  Result<AcquireAllResult> finish()
  {
    RETURN_IF_ERROR(m_held.prepare_for_job());
    if (m_held.loss()) {
      return interrupted();
    }
    if (needs_one_token() && !have_one_token()) {
      return AcquireAllResult{RetryNeeded{.why = "a lock was granted after a failed request, and by another token"}};
    }
    m_lock_set.store->stop_threads();  // the job or the keeper is forked next
    return AcquireAllResult{AllAcquired{.waited = m_waited}};
  }

  // The result after an interruption: by a signal, or by the loss of a lock.
  AcquireAllResult interrupted()
  {
    const auto loss = m_held.loss();
    const bool by_signal = m_context.signals.stop().requested();
    return loss && !by_signal ? AcquireAllResult{RetryNeeded{.why = *loss}} : AcquireAllResult{Interrupted{}};
  }

  const RunRequest& m_request;
  const RunContext& m_context;
  const WaitPolicy& m_policy;
  LockSet& m_lock_set;
  HeldLocks m_held;
  const Instant m_began = m_context.clock.now();
  bool m_waited = false;
  LockSession* m_busy = nullptr;  // the lock for which the time to wait was over
  std::string m_newer;            // SkippedRun::newer
};

}  // namespace

Result<AcquireAllResult> acquire_all(const RunRequest& request, const RunContext& context, const WaitPolicy& policy,
                                     StopToken stop, LockSet& lock_set)
{
  return Acquisition(request, context, policy, stop, lock_set).run();
}

std::string busy_line(const RunRequest& request, const LockBusy& busy)
{
  const Busy& last = busy.last;
  if (last.replaced) {
    return replaced_text(busy.display_name, *last.replaced);
  }
  const bool ends_at_once = busy.waits_for_itself || last.full > 0;
  const Millis waited = ends_at_once ? Millis{0} : request.wait.value_or(Millis{0});
  return busy_text(busy.display_name, waited, last.holder, last.ttl, last.permits) + full_text(last.full) +
         (busy.waits_for_itself ? std::string(waits_for_itself_text) : "");
}

bool may_come_back(const Error& error, const WaitPolicy& policy, Instant now)
{
  const bool is_over = policy.until && now >= *policy.until;
  return is_passing(error.code) && !is_over;
}

Wake pause_between_attempts(const RunContext& context, StopToken stop)
{
  const auto half = static_cast<std::uint64_t>(retry_pause.count() / 2);
  const Millis length = retry_pause / 2 + Millis{static_cast<std::int64_t>(context.rng.next() % half)};
  return context.clock.sleep_until(context.clock.now() + length, stop);
}

RunEnd report_busy(const RunRequest& request, const LockBusy& busy, const Log& log)
{
  if (const auto& replaced = busy.last.replaced) {
    const int code = request.replaced_code.value_or(request.busy_code);
    log.notice(busy_line(request, busy), {.event = "replaced", .holder = newer_run(*replaced), .exit_code = code});
    return ExitWith{code};
  }
  const std::optional<Holder>& holder = busy.last.holder;
  log.notice(busy_line(request, busy), {.event = "busy",
                                        .holder = holder ? describe(*holder) : "",
                                        .place = place_of(busy.last),
                                        .exit_code = request.busy_code});
  return ExitWith{request.busy_code};
}

}  // namespace rlock
