// SPDX-License-Identifier: Apache-2.0
#include "lock/waiting.h"

#include "lock/lock_candidates.h"
#include "lock/validity.h"
#include "lock/wait_notifications.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis release_options{500};  // how long leaving may take when the server does not answer
constexpr Millis least_answer_time{40};
constexpr Millis first_pause{50};  // after a failure; doubles up to the longest
constexpr Millis longest_pause{1000};
constexpr int stale_grants = 3;

// For the job that has just been let go: it needs about as long to begin, perhaps on our core. Measured, with 200 waiting for
// jobs of 3 ms or 10: a tenth less time from job to job; jobs that take no time at all lose as much.
constexpr std::chrono::microseconds out_of_the_way{1500};

// One caller's way to any of several locks; lives as long as one wait_and_acquire.
class WaitLoop {
 public:
  WaitLoop(LockStore& store, std::span<const LockSpec> specs, const Owner& owner, const WaitPolicy& policy,
           const Clock& clock, Rng& rng, StopToken stop, WaitObserver& onlooker)
      : m_store(store),
        m_owner(owner),
        m_policy(policy),
        m_clock(clock),
        m_rng(rng),
        m_stop(stop),
        m_onlooker(onlooker),
        m_places(specs, rng),
        m_to_scout(policy.patient && specs.size() == 1 ? 0 : specs.size()),
        m_ears(store, specs, owner, m_places, clock)
  {
  }

  Result<WaitOutcome> run()
  {
    for (;;) {
      if (LockCandidate* const place = m_places.due(time_is_over() ? far_future : m_clock.now())) {
        auto outcome = attempt(*place);
        if (!outcome || *outcome) {
          if (!outcome || !std::holds_alternative<Taken>(**outcome)) {
            leave_all_but(nullptr);
          }
          return outcome ? Result(**std::move(outcome)) : Result<WaitOutcome>(outcome.error());
        }
        listen_after(*place);
      } else if (rest() == Wake::stopped) {
        leave_all_but(nullptr);
        return WaitOutcome{Interrupted{}};
      }
    }
  }

 private:
  using Step = Result<std::optional<WaitOutcome>>;  // nullopt: not yet

  Step attempt(LockCandidate& place)
  {
    const AcquireOptions manner{.queues = m_to_scout == 0, .ticket = place.ticket};
    const auto [tried, sent_at] = ask(place, manner);
    if (!tried) {
      return failed(place, tried.error());
    }
    if (const auto* granted = std::get_if<Granted>(&*tried)) {
      return taken(place, *granted, sent_at);
    }
    m_server_was_there = true;
    m_failures = 0;
    if (const auto* done = std::get_if<AlreadyDone>(&*tried)) {
      place.to_leave = false;
      return std::optional<WaitOutcome>{*done};
    }
    place.refused(std::get<Busy>(*tried), manner, sent_at, m_rng);
    if (place.in_line) {
      m_places.came(place.ticket);
    }
    return refused(place, sent_at);
  }

  struct Asked {
    Result<Attempt> answer;
    Instant sent_at;
  };

  // Tied attempts are repeated within the time of one answer, but only for as long as a lease that comes of it is not much
  // older than its grant.
  Asked ask(const LockCandidate& place, const AcquireOptions& manner)
  {
    LockSpec asked = place.spec;
    const Instant first = m_clock.now();
    const CallLimits limit{.deadline = answer_by(first), .stop = m_stop};
    const Instant give_up = std::min(limit.deadline, first + asked.ttl / 4);
    for (Instant sent_at = first;; sent_at = m_clock.now()) {
      if (std::exchange(m_owner_is_spent, false)) {
        m_owner = Owner::fresh(m_rng, ::getpid());
      }
      asked.who.since_ms = wall_clock_ms();
      auto answer = m_store.acquire(asked, m_owner, manner, limit);
      m_owner_is_spent = m_store.takes_back() && !(answer && std::holds_alternative<Granted>(*answer));
      const Busy* busy = answer ? std::get_if<Busy>(&*answer) : nullptr;
      const Instant again = busy != nullptr && busy->tied ? m_clock.now() + *busy->again_in : far_future;
      if (again >= give_up) {
        return {std::move(answer), sent_at};
      }
      m_server_was_there = true;
      if (m_clock.sleep_until(again, m_stop) == Wake::stopped) {
        return {Error{ErrorCode::interrupted, "interrupted"}, sent_at};
      }
    }
  }

  // Never two: all other lines are left before we say that one is ours. A grant that is old by then, half the lease or
  // more, is asked for again: where no line was left the same request only renews it.
  Step taken(LockCandidate& place, const Granted& granted, Instant sent_at)
  {
    place.to_leave = true;
    const auto replicated = m_store.await_replicas(place.spec, {.deadline = answer_by(sent_at), .stop = m_stop});
    if (!replicated) {
      give_all_back();
      return failed(place, replicated.error());
    }
    m_server_was_there = true;
    m_failures = 0;
    leave_others(place);
    if (leaves_enough(sent_at, place.spec.ttl, m_clock.now())) {
      return std::optional<WaitOutcome>{Taken{
          .which = place.which, .owner = m_owner, .grant = granted, .sent_at = sent_at, .listener = m_ears.hand_on()}};
    }
    if (++m_stale_grants < stale_grants) {
      if (m_places.size() > 1) {
        give_all_back();
      }
      place.look_at = m_clock.now();
      return std::optional<WaitOutcome>{};
    }
    return too_slow();
  }

  Step refused(LockCandidate& place, Instant sent_at)
  {
    m_places.next_turn();
    scouted(place);
    place.is_sure = m_ears.are_open();
    if (place.is_first()) {
      m_prepare_at = sent_at + out_of_the_way;
    }
    const LockCandidate& nearest = m_places.nearest();
    if (&nearest == &place) {
      m_onlooker.refused(*place.last);
    }
    const bool is_hopeless = m_places.size() == 1 && m_onlooker.is_hopeless(*place.last);
    const bool gives_up = is_hopeless || (m_policy.patient ? time_is_over() : m_to_scout == 0);
    if (gives_up && !nearest.last->unfit.empty()) {
      return Error{ErrorCode::unfit, nearest.last->unfit};
    }
    return gives_up ? std::optional<WaitOutcome>{TimedOut{*nearest.last}} : std::optional<WaitOutcome>{};
  }

  // Where others wait for any of the locks, none of them is free.
  void scouted(const LockCandidate& place)
  {
    if (place.only_seen()) {
      const bool others_wait = place.last->place > 0;
      m_to_scout = m_policy.patient && others_wait ? 0 : m_to_scout - 1;
    }
  }

  Step failed(LockCandidate& place, const Error& error)
  {
    place.to_leave = place.to_leave || error.code == ErrorCode::unreachable || error.code == ErrorCode::interrupted;
    if (error.code == ErrorCode::interrupted) {
      return std::optional<WaitOutcome>{Interrupted{}};
    }
    m_server_was_there = m_server_was_there || error.was_there;
    const bool cut_while_resting = m_server_was_there && m_failures == 0;
    if (!is_passing(error.code) || !m_server_was_there || !m_policy.patient || (time_is_over() && !cut_while_resting)) {
      return error;
    }
    m_store.forget();
    m_ears.close();
    m_places.ask_all_at(cut_while_resting ? m_clock.now() : m_clock.now() + pause());
    ++m_failures;
    return std::optional<WaitOutcome>{};
  }

  // Longer with each failure in a row, and never the same for two who failed together.
  Millis pause()
  {
    const Millis most = std::min(first_pause * (1 << std::min(m_failures, 5)), longest_pause);
    return most / 2 + Millis{below(m_rng, static_cast<std::uint64_t>(most.count() / 2) + 1)};
  }

  // Before we rest, and before we stand in more than one line.
  void listen_after(const LockCandidate& asked)
  {
    const bool rests = asked.only_seen() || m_clock.now() < asked.due_at();
    if (m_failures == 0 && m_to_scout == 0 && rests) {
      m_ears.open({.deadline = answer_by(m_clock.now()), .stop = m_stop});
    }
  }

  // Until it is time to look, something was said, or time is over.
  Wake rest()
  {
    if (m_ears.are_open()) {
      hear();  // what came along with the confirmation is not seen by poll
    }
    for (;;) {
      const Instant now = m_clock.now();
      const Instant end = std::min(m_places.next_look(), m_policy.until.value_or(far_future));
      if (now >= m_onlooker.due()) {
        m_onlooker.tick();
      }
      if (now >= m_prepare_at) {
        m_prepare_at = far_future;
        m_onlooker.next_in_line();
      }
      if (now >= end) {
        return Wake::due;  // who asks then looks at the stop first
      }
      std::array<pollfd, 2> waits{pollfd{.fd = m_stop.fd(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_ears.fd(), .events = POLLIN, .revents = 0}};
      poll_until(waits, now, std::min({end, m_onlooker.due(), m_prepare_at}));
      if (waits[0].revents != 0) {
        return Wake::stopped;
      }
      if (waits[1].revents != 0) {
        hear();
      }
    }
  }

  void hear()
  {
    if (m_ears.hear()) {
      m_prepare_at = m_clock.now() + out_of_the_way;
    }
  }

  // The first answer gets its full time whatever the patience; later ones no longer than that.
  [[nodiscard]] Instant answer_by(Instant now) const
  {
    const Instant full = now + m_policy.server_timeout;
    const bool bounded = m_server_was_there && m_policy.patient && m_policy.until;
    return bounded ? std::clamp(*m_policy.until, std::min(now + least_answer_time, full), full) : full;
  }

  [[nodiscard]] bool time_is_over() const { return m_policy.until && m_clock.now() >= *m_policy.until; }

  // Deaf at once: what is handed over from now on is not for us.
  void leave_others(const LockCandidate& kept)
  {
    if (m_places.size() > 1) {
      m_ears.close();
      leave_all_but(&kept);
    }
  }

  void give_all_back()
  {
    m_ears.close();
    leave_all_but(nullptr);
  }

  // One request for both: it leaves the line, or passes on what was handed to us there. The owner is not used again unless
  // the servers say that nothing happened.
  void leave_all_but(const LockCandidate* kept)
  {
    std::vector<LockCandidate*> leaving;
    std::vector<const LockSpec*> specs;
    for (LockCandidate& place : m_places) {
      if (place.to_leave && &place != kept) {
        leaving.push_back(&place);
        specs.push_back(&place.spec);
      }
    }
    if (specs.empty()) {
      return;
    }
    const Instant by = m_clock.now() + std::min(release_options, m_policy.server_timeout);
    const auto answers = m_store.release_each(specs, m_owner, {.deadline = by, .stop = StopToken::never()});
    for (std::size_t i = 0; i < leaving.size(); ++i) {
      m_owner_is_spent = m_owner_is_spent || answers[i] || answers[i].error().code != ErrorCode::unfit;
      if (answers[i]) {
        leaving[i]->left(m_clock.now());
      }
    }
  }

  LockStore& m_store;
  Owner m_owner;
  bool m_owner_is_spent = false;  // the next attempt needs a fresh one
  const WaitPolicy& m_policy;
  const Clock& m_clock;
  Rng& m_rng;
  StopToken m_stop;
  WaitObserver& m_onlooker;

  LockCandidates m_places;
  std::size_t m_to_scout;  // how many are still to be looked at without getting in line
  WaitNotifications m_ears;
  Instant m_prepare_at = far_future;  // for our turn; set when we are first in line
  bool m_server_was_there = false;
  int m_failures = 0;
  int m_stale_grants = 0;
};

}  // namespace

Result<WaitOutcome> wait_and_acquire(LockStore& store, std::span<const LockSpec> specs, const Owner& owner,
                                     const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop,
                                     WaitObserver& onlooker)
{
  return WaitLoop(store, specs, owner, policy, clock, rng, stop, onlooker).run();
}

}  // namespace rlock
