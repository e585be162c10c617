// SPDX-License-Identifier: Apache-2.0
#include "lock/waiting.h"

#include <unistd.h>
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "lock/lease_budget.h"
#include "lock/lock_candidates.h"
#include "lock/reach_server.h"
#include "lock/store.h"
#include "lock/waiter_rest.h"

namespace rlock {

namespace {

constexpr int most_stale_grants = 3;

// A server that has not answered for less time may only be slow.
constexpr Millis least_silence{1000};

// Sends the requests of one waiter to the store: gives each request its deadline, and each attempt an owner that may still be
// used. Not thread-safe.
class WaiterRequests {
 public:
  // All references must outlive this.
  WaiterRequests(LockStore& store, const Owner& owner, const WaitPolicy& policy, const Clock& clock, Rng& rng,
                 StopToken stop)
      : m_store(store), m_owner(owner), m_policy(policy), m_clock(clock), m_rng(rng), m_stop(stop)
  {
  }

  struct Answer {
    Result<Attempt> attempt;
    Instant sent_at;
  };
  // Sends one attempt. Repeats an attempt whose vote was split within the time of one answer, while a late grant would still leave
  // enough of its lease.
  Answer acquire(const LockCandidate& candidate, const AcquireOptions& options);
  Result<Done> await_replicas(const LockCandidate& candidate, Instant sent_at);
  // Leaves the queues of all candidates but `kept`, and gives their locks back.
  void release_all_but(LockCandidates& candidates, const LockCandidate* kept);
  void drop_connection() { m_store.drop_connection(); }

  // The owner of the last attempt. The reference stays valid; the value may change with each attempt.
  [[nodiscard]] const Owner& owner() const { return m_owner; }
  [[nodiscard]] CallLimits limit() const { return limit_from(m_clock.now()); }

  void server_has_answered() { m_server_has_answered = true; }
  [[nodiscard]] bool has_server_answered() const { return m_server_has_answered; }

 private:
  [[nodiscard]] CallLimits limit_from(Instant now) const;

  LockStore& m_store;
  Owner m_owner;
  bool m_needs_fresh_owner = false;
  bool m_server_has_answered = false;
  const WaitPolicy& m_policy;
  const Clock& m_clock;
  Rng& m_rng;
  const StopToken m_stop;
};

CallLimits WaiterRequests::limit_from(Instant now) const
{
  const bool bounded = m_server_has_answered && m_policy.waits && !waits_for_server(m_policy, now);
  return {.deadline = answer_deadline(now, m_policy.server_timeout, bounded ? m_policy.until : std::nullopt),
          .stop = m_stop};
}

WaiterRequests::Answer WaiterRequests::acquire(const LockCandidate& candidate, const AcquireOptions& options)
{
  LockSpec spec = candidate.spec;
  spec.max_waiting = m_policy.was_in_line ? std::nullopt : spec.max_waiting;
  const Instant first = m_clock.now();
  const CallLimits limit = limit_from(first);
  const Instant give_up = std::min(limit.deadline, first + spec.ttl / 4);
  for (Instant sent_at = first;; sent_at = m_clock.now()) {
    if (std::exchange(m_needs_fresh_owner, false)) {
      m_owner = Owner::fresh(m_rng, ::getpid());
    }
    spec.who.since_ms = wall_clock_ms();
    if (spec.ends_at) {
      spec.ttl = spec.who.lease = std::max(std::chrono::ceil<Millis>(*spec.ends_at - m_clock.now()), Millis{1});
    }
    auto answer = m_store.acquire(spec, m_owner, options, limit);
    m_needs_fresh_owner =
        m_store.traits().releases_refused_attempts && !(answer && std::holds_alternative<Granted>(*answer));
    const Busy* busy = answer ? std::get_if<Busy>(&*answer) : nullptr;
    const Instant again = busy != nullptr && busy->split_vote ? m_clock.now() + *busy->again_in : far_future;
    if (again >= give_up) {
      return {std::move(answer), sent_at};
    }
    m_server_has_answered = true;
    if (m_clock.sleep_until(again, m_stop) == Wake::stopped) {
      return {Error{ErrorCode::interrupted, "interrupted"}, sent_at};
    }
  }
}

Result<Done> WaiterRequests::await_replicas(const LockCandidate& candidate, Instant sent_at)
{
  return m_store.await_replicas(candidate.spec, limit_from(sent_at));
}

// The owner may be used again only if the store says that nothing happened.
void WaiterRequests::release_all_but(LockCandidates& candidates, const LockCandidate* kept)
{
  std::vector<LockCandidate*> leaving;
  std::vector<const LockSpec*> specs;
  for (LockCandidate& candidate : candidates) {
    if (candidate.needs_release && &candidate != kept) {
      leaving.push_back(&candidate);
      specs.push_back(&candidate.spec);
    }
  }
  if (specs.empty()) {
    return;
  }
  const Instant by = m_clock.now() + std::min(give_back_timeout, m_policy.server_timeout);
  const auto answers = m_store.release_each(specs, m_owner, {.deadline = by, .stop = StopToken::never()});
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    m_needs_fresh_owner = m_needs_fresh_owner || answers[i] || answers[i].error().code != ErrorCode::server_not_ready;
    if (answers[i]) {
      leaving[i]->released(m_clock.now());
    }
  }
}

// One call of wait_and_acquire.
class WaitLoop {
 public:
  WaitLoop(LockStore& store, std::span<const LockSpec> specs, const Owner& owner, const WaitPolicy& policy,
           const Clock& clock, Rng& rng, StopToken stop, WaitObserver& observer)
      : m_policy(policy),
        m_clock(clock),
        m_rng(rng),
        m_stop(stop),
        m_observer(observer),
        m_pauses(rng),
        m_requests(store, owner, policy, clock, rng, stop),
        m_candidates(specs, rng),
        m_spares_connections(store.traits().spares_connections),
        m_to_probe(policy.waits && specs.size() == 1 ? 0 : specs.size()),
        m_notifications(store, specs, m_requests.owner(), m_candidates, clock),
        m_rest(policy, clock, stop, observer, m_candidates, m_notifications)
  {
  }

  Result<WaitOutcome> run()
  {
    for (;;) {
      if (auto taken = taken_by_message()) {
        return WaitOutcome{*std::move(taken)};
      }
      if (LockCandidate* const candidate =
              m_candidates.due(time_is_over() && !only_server_counts() ? far_future : m_clock.now())) {
        auto outcome = attempt(*candidate);
        if (!outcome || *outcome) {
          if (!outcome || !std::holds_alternative<Taken>(**outcome)) {
            m_requests.release_all_but(m_candidates, nullptr);
          }
          return outcome ? Result(**std::move(outcome)) : Result<WaitOutcome>(outcome.error());
        }
        listen_after(*candidate);
      } else if (m_rest.rest(only_server_counts() ? far_future : m_policy.until.value_or(far_future)) ==
                 Wake::stopped) {
        m_requests.release_all_but(m_candidates, nullptr);
        return WaitOutcome{Interrupted{}};
      }
    }
  }

 private:
  using Step = Result<std::optional<WaitOutcome>>;  // nullopt: the wait goes on

  Step attempt(LockCandidate& candidate)
  {
    const AcquireOptions options{.queues = m_to_probe == 0, .ticket = candidate.ticket};
    const auto [answer, sent_at] = m_requests.acquire(candidate, options);
    if (!answer) {
      return failed(candidate, answer.error(), sent_at);
    }
    if (const auto* granted = std::get_if<Granted>(&*answer)) {
      return taken(candidate, *granted, sent_at);
    }
    server_answered();
    if (const auto* done = std::get_if<AlreadyDone>(&*answer)) {
      candidate.needs_release = false;
      return std::optional<WaitOutcome>{*done};
    }
    if (std::get<Busy>(*answer).replaced) {
      candidate.needs_release = false;
      return std::optional<WaitOutcome>{TimedOut{std::get<Busy>(*answer)}};
    }
    if (std::get<Busy>(*answer).full > 0) {
      return turned_away(candidate, std::get<Busy>(*answer));
    }
    candidate.refused(std::get<Busy>(*answer), options, sent_at, m_rng);
    if (candidate.queued) {
      m_candidates.assign_tickets(candidate.ticket);
    }
    return refused(candidate, sent_at);
  }

  // The line of one lock is full. A waiter that another line takes is in line everywhere (LockCandidates::assign_tickets).
  Step turned_away(LockCandidate& candidate, const Busy& busy)
  {
    candidate.turned_away(busy);
    m_candidates.next_turn();
    const bool are_all_full = std::ranges::all_of(m_candidates, &LockCandidate::is_full);
    return are_all_full ? std::optional<WaitOutcome>{TimedOut{busy}} : std::optional<WaitOutcome>{};
  }

  // The caller never holds two locks: all other queues are left before Taken is returned. A grant that leaves too little of
  // the lease by then is asked for again: if no queue was left, the same request only renews it.
  Step taken(LockCandidate& candidate, const Granted& granted, Instant sent_at)
  {
    candidate.needs_release = true;
    const auto replicated = m_requests.await_replicas(candidate, sent_at);
    if (!replicated) {
      give_all_back();
      return failed(candidate, replicated.error(), sent_at);
    }
    server_answered();
    leave_others(candidate);
    if (LeaseBudget(granted.lease).may_begin(m_clock.now())) {
      return std::optional<WaitOutcome>{Taken{.which = candidate.which,
                                              .owner = m_requests.owner(),
                                              .grant = granted,
                                              .is_claim = false,
                                              .listener = m_notifications.take_listener()}};
    }
    if (++m_stale_grants < most_stale_grants) {
      if (m_candidates.size() > 1) {
        give_all_back();
      }
      candidate.ask_at = m_clock.now();
      return std::optional<WaitOutcome>{};
    }
    return too_slow();
  }

  std::optional<Taken> taken_by_message()
  {
    LockCandidate& candidate = *m_candidates.begin();
    const auto handover = std::exchange(candidate.handover, std::nullopt);
    if (!handover || !m_policy.takes_message || m_candidates.size() > 1 || !candidate.last || !candidate.last->at) {
      return std::nullopt;
    }
    const auto at = handed_over_at(*handover, candidate.asked_at, *candidate.last->at, m_clock.now());
    return at ? std::optional(Taken{.which = candidate.which,
                                    .owner = m_requests.owner(),
                                    .grant = {.fence = handover->fence,
                                              .count = 1,
                                              .lease = LeaseTerm{.from = *at, .length = handover->lease}},
                                    .is_claim = true,
                                    .listener = m_notifications.take_listener()})
              : std::nullopt;
  }

  Step refused(LockCandidate& candidate, Instant sent_at)
  {
    m_candidates.next_turn();
    count_probe(candidate);
    candidate.queue_checked = m_notifications.is_open();
    if (candidate.is_first()) {
      m_rest.first_in_line(sent_at);
    }
    const LockCandidate& nearest = m_candidates.nearest();
    if (&nearest == &candidate) {
      m_observer.refused(*candidate.last);
    }
    const bool is_hopeless = m_candidates.size() == 1 && m_observer.is_hopeless(*candidate.last);
    const bool gives_up = is_hopeless || (m_policy.waits ? time_is_over() : m_to_probe == 0);
    if (gives_up && !nearest.last->not_ready.empty()) {
      const Error error{ErrorCode::server_not_ready, nearest.last->not_ready};
      return rlock::waits_for_server(m_policy, m_clock.now()) ? failed(candidate, error, sent_at) : error;
    }
    if (!gives_up && m_policy.stopper != nullptr) {
      m_policy.stopper->in_the_way(*candidate.last);
    }
    return gives_up ? std::optional<WaitOutcome>{TimedOut{*nearest.last}} : std::optional<WaitOutcome>{};
  }

  // Other waiters mean that none of the locks is free, so no further lock is probed.
  void count_probe(const LockCandidate& candidate)
  {
    if (candidate.only_probed()) {
      const bool others_wait = candidate.last->waiters_ahead > 0;
      m_to_probe = m_policy.waits && others_wait ? 0 : m_to_probe - 1;
    }
  }

  Step failed(LockCandidate& candidate, const Error& error, Instant sent_at)
  {
    const bool may_have_happened = error.code == ErrorCode::unreachable || error.code == ErrorCode::interrupted;
    candidate.needs_release = candidate.needs_release || may_have_happened;
    if (error.code == ErrorCode::interrupted) {
      return std::optional<WaitOutcome>{Interrupted{}};
    }
    if (error.was_there) {
      m_requests.server_has_answered();
    }
    const bool has_answered = error.was_there && error.code == ErrorCode::server_not_ready;
    m_silent_since = has_answered || error.answered ? m_clock.now() : m_silent_since.value_or(sent_at);
    const Instant now = m_clock.now();
    const bool was_there = m_requests.has_server_answered();
    const bool cut_while_resting = was_there && m_pauses.failures() == 0;
    const bool stays_in_line = was_there && m_policy.waits && (!time_is_over() || cut_while_resting);
    const bool waits_for_it = rlock::waits_for_server(m_policy, now);
    if (!is_passing(error.code) || (!stays_in_line && !waits_for_it)) {
      // The last request of a wait often has too little time.
      const bool is_only_late =
          was_there && m_policy.waits && (has_answered || error.late) && now - *m_silent_since < least_silence;
      return is_passing(error.code) && is_only_late
                 ? Step(WaitOutcome{TimedOut{m_candidates.nearest().last.value_or(Busy{})}})
                 : Step(error);
    }
    if (!has_answered) {
      m_requests.drop_connection();
      m_notifications.close();
    }
    if (!cut_while_resting || has_answered) {
      m_observer.server_failed(error);
    }
    const Instant until = waits_for_it ? *m_policy.server_until : now;
    m_candidates.ask_all_at(cut_while_resting && !has_answered ? now : now + m_pauses.next(now, until));
    m_pauses.failed();
    return std::optional<WaitOutcome>{};
  }

  void server_answered()
  {
    m_requests.server_has_answered();
    m_silent_since.reset();
    if (m_pauses.failures() > 0) {
      m_pauses.succeeded();
      m_observer.server_answered();
    }
  }

  // Then the end of the wait for the lock does not count.
  [[nodiscard]] bool only_server_counts() const
  {
    return m_pauses.failures() > 0 && rlock::waits_for_server(m_policy, m_clock.now());
  }

  // Subscribes before the waiter rests, and before it joins a second queue.
  void listen_after(const LockCandidate& asked)
  {
    const bool rests = asked.only_probed() || m_clock.now() < asked.due_at();
    if (m_spares_connections && rests && std::ranges::all_of(m_candidates, &LockCandidate::is_far_back)) {
      m_notifications.close();
      m_requests.drop_connection();
    } else if (m_pauses.failures() == 0 && m_to_probe == 0 && rests) {
      m_notifications.open_and_check(m_requests.limit());
    }
  }

  [[nodiscard]] bool time_is_over() const { return m_policy.until && m_clock.now() >= *m_policy.until; }

  // Closes the subscription first: then the scripts hand over to the waiter no more.
  void leave_others(const LockCandidate& kept)
  {
    if (m_candidates.size() > 1) {
      m_notifications.close();
      m_requests.release_all_but(m_candidates, &kept);
    }
  }
  void give_all_back()
  {
    m_notifications.close();
    m_requests.release_all_but(m_candidates, nullptr);
  }

  const WaitPolicy& m_policy;
  const Clock& m_clock;
  Rng& m_rng;
  const StopToken m_stop;
  WaitObserver& m_observer;
  RetryPauses m_pauses;

  WaiterRequests m_requests;
  LockCandidates m_candidates;
  const bool m_spares_connections;
  std::size_t m_to_probe;  // how many candidates the waiter still asks for without queueing; 0: it queues, or gives up
  WaitNotifications m_notifications;
  WaiterRest m_rest;
  int m_stale_grants = 0;
  std::optional<Instant> m_silent_since;  // when the first of the requests that failed was sent
};

}  // namespace

Result<WaitOutcome> wait_and_acquire(LockStore& store, std::span<const LockSpec> specs, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                     WaitObserver& observer)
{
  return WaitLoop(store, specs, owner, policy, clock, rng, stop, observer).run();
}

}  // namespace rlock
