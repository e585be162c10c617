// SPDX-License-Identifier: Apache-2.0
#include "lock/waiting.h"

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include "lock/lease_budget.h"
#include "lock/lock_candidates.h"
#include "lock/reach_server.h"
#include "lock/store.h"
#include "lock/waiter_requests.h"

namespace rlock {

// Receives the messages to one waiter about all its lock candidates over one connection, and moves the time of each
// candidate's next request accordingly. Messages may be lost. Not thread-safe.

class WaitNotifications {
 public:
  // All arguments must outlive this.
  WaitNotifications(LockStore& store, std::span<const LockSpec> specs, const Owner& owner, LockCandidates& candidates,
                    const Clock& clock)
      : m_store(store), m_specs(specs), m_owner(owner), m_candidates(candidates), m_clock(clock)
  {
  }

  [[nodiscard]] bool is_open() const { return m_listener != nullptr; }
  [[nodiscard]] int fd() const { return m_listener ? m_listener->fd() : -1; }  // readable: call receive()

  // Subscribes, and checks that the waiter is still in each queue, because the store may have handed a lock over before the
  // subscription, or told the waiter to watch a hand-over. A candidate whose check fails is due soon.
  void open(const CallLimits& limit);
  void close();

  // Takes the messages that have arrived. Returns whether the waiter may now be first in one of the queues. first_of_quick: the last
  // hold of that lock was short.
  enum class Place { behind, first, first_of_quick };
  Place receive();

  // Gives the listener to the caller. nullptr: there is none, or it listens for an earlier owner.
  std::unique_ptr<Listener> take_listener() { return m_listens_for == m_owner ? std::move(m_listener) : nullptr; }

 private:
  void check(LockCandidate& candidate, const CallLimits& limit);
  void hear_releases(LockCandidate& candidate, const CallLimits& limit);

  LockStore& m_store;
  const std::span<const LockSpec> m_specs;
  const Owner& m_owner;
  LockCandidates& m_candidates;
  const Clock& m_clock;
  std::unique_ptr<Listener> m_listener;  // for all of m_specs
  std::optional<Owner> m_listens_for;    // the owner when m_listener was opened
};

// What a waiter does between two requests: it hears messages, and lets its caller prepare a job, show the wait and stop the
// holder. Not thread-safe.

class WaiterRest {
 public:
  // All references must outlive this.
  WaiterRest(const WaitPolicy& policy, const Clock& clock, StopToken stop, WaitObserver& observer,
             LockCandidates& candidates, WaitNotifications& notifications)
      : m_policy(policy),
        m_clock(clock),
        m_stop(stop),
        m_observer(observer),
        m_candidates(candidates),
        m_notifications(notifications)
  {
  }

  // Notes that the waiter is first in line since the request that was sent at `sent_at`.
  void first_in_line(Instant sent_at);
  // Returns when a request is due, when a message has come, or at `until`, the end of the wait.
  Wake rest(Instant until);

 private:
  void call_observer(Instant now);
  [[nodiscard]] Instant stopper_due() const;
  void stop_holder();
  void receive();

  const WaitPolicy& m_policy;
  const Clock& m_clock;
  const StopToken m_stop;
  WaitObserver& m_observer;
  LockCandidates& m_candidates;
  WaitNotifications& m_notifications;
  Instant m_prepare_at = far_future;  // when the observer may prepare its job; set while the waiter is first
};

namespace {

constexpr int most_stale_grants = 3;

// A server that has not answered for less time may only be slow.
constexpr Millis least_silence{1000};

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
              m_candidates.due(time_is_over() && !waits_for_server() ? far_future : m_clock.now())) {
        auto outcome = attempt(*candidate);
        if (!outcome || *outcome) {
          if (!outcome || !std::holds_alternative<Taken>(**outcome)) {
            m_requests.release_all_but(m_candidates, nullptr);
          }
          return outcome ? Result(**std::move(outcome)) : Result<WaitOutcome>(outcome.error());
        }
        listen_after(*candidate);
      } else if (m_rest.rest(waits_for_server() ? far_future : m_policy.until.value_or(far_future)) == Wake::stopped) {
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
    candidate.refused(std::get<Busy>(*answer), options, sent_at, m_rng);
    if (candidate.queued) {
      m_candidates.assign_tickets(candidate.ticket);
    }
    return refused(candidate, sent_at);
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
  [[nodiscard]] bool waits_for_server() const
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
      m_notifications.open(m_requests.limit());
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
  std::size_t m_to_probe;  // candidates that are still to be asked for without queueing
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

namespace {

// The first waiter prepares its job this long after the job before has begun, because both may share a core, and at once where the
// last hold was shorter than QUICK_TURN (lua/lib/waiters.lua). Measured with 200 waiters: a tenth less time from job to job if jobs
// take 3 ms or 10 ms; a fifth more if they take no time.
constexpr std::chrono::microseconds preparation_delay{1500};

}  // namespace

void WaiterRest::first_in_line(Instant sent_at) { m_prepare_at = sent_at + preparation_delay; }

Wake WaiterRest::rest(Instant until)
{
  if (m_notifications.is_open()) {
    receive();  // messages that came with the reply to the subscription are read already: poll does not see them
  }
  for (;;) {
    const Instant now = m_clock.now();
    const Instant end = std::min(m_candidates.next_due(), until);
    call_observer(now);
    if (now >= end) {
      return Wake::due;  // a request looks at the stop token first
    }
    if (now >= stopper_due()) {
      stop_holder();
      continue;
    }
    std::array<pollfd, 3> waits{pollfd{.fd = m_stop.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_notifications.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_observer.fd(), .events = POLLIN, .revents = 0}};
    poll_until(waits, now, std::min({end, m_observer.due(), m_prepare_at, stopper_due()}));
    if (waits[0].revents != 0) {
      return Wake::stopped;
    }
    if (waits[1].revents != 0) {
      receive();
    }
    if (waits[2].revents != 0) {
      m_observer.tick();
    }
  }
}

void WaiterRest::call_observer(Instant now)
{
  if (now >= m_observer.due()) {
    m_observer.tick();
  }
  if (now >= m_prepare_at) {
    m_prepare_at = far_future;
    m_observer.next_in_line();
  }
}

Instant WaiterRest::stopper_due() const { return m_policy.stopper != nullptr ? m_policy.stopper->due() : far_future; }

void WaiterRest::stop_holder()
{
  if (m_policy.stopper->step(m_stop)) {
    m_candidates.ask_all_by(m_clock.now());
  }
}

void WaiterRest::receive()
{
  switch (m_notifications.receive()) {
    case WaitNotifications::Place::behind: break;
    case WaitNotifications::Place::first: first_in_line(m_clock.now()); break;
    case WaitNotifications::Place::first_of_quick: m_prepare_at = m_clock.now(); break;
  }
}

namespace {

constexpr Millis poll_pause{200};  // between requests of a waiter that cannot subscribe

}  // namespace

void WaitNotifications::open(const CallLimits& limit)
{
  if (!m_listener) {
    auto listener = m_store.listen(m_specs, m_owner, limit);
    if (!listener) {
      m_candidates.ask_all_by(m_clock.now() + poll_pause);
      return;
    }
    m_listener = *std::move(listener);
    m_listens_for = m_owner;
  }
  const Instant now = m_clock.now();
  for (LockCandidate& candidate : m_candidates) {
    const bool rests = candidate.queued && now < candidate.due_at();
    if (rests && m_listener) {
      check(candidate, limit);
    }
  }
}

void WaitNotifications::check(LockCandidate& candidate, const CallLimits& limit)
{
  if (!candidate.queue_checked) {
    candidate.queue_checked = true;
    const auto queued = m_store.is_queued(candidate.spec, m_owner, limit);
    if (!queued || !*queued) {
      candidate.ask_at = m_clock.now();
      return;
    }
  }
  if (candidate.must_hear_releases && !candidate.hears_releases) {
    hear_releases(candidate, limit);
  }
}

void WaitNotifications::hear_releases(LockCandidate& candidate, const CallLimits& limit)
{
  candidate.hears_releases = true;
  candidate.ask_at = m_clock.now();
  if (!m_listener->hear_releases(candidate.which, limit)) {
    close();
    candidate.ask_at += poll_pause;
  }
}

void WaitNotifications::close()
{
  m_listener.reset();
  for (LockCandidate& candidate : m_candidates) {
    candidate.stopped_listening();
  }
}

WaitNotifications::Place WaitNotifications::receive()
{
  const auto hints = m_listener->heard(m_clock);
  const Instant now = m_clock.now();
  if (!hints) {
    close();
    m_candidates.ask_all_at(now);  // whatever cut the connection may have changed the queues as well
    return Place::behind;
  }
  Place place = Place::behind;
  for (LockCandidate& candidate : m_candidates) {
    const Hint& hint = (*hints)[candidate.which];
    candidate.notified(hint, now);
    if (hint.next && !hint.look_in) {
      place = hint.quick ? Place::first_of_quick : std::max(place, Place::first);
    }
  }
  return place;
}

}  // namespace rlock
