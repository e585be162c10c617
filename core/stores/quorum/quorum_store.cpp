// SPDX-License-Identifier: Apache-2.0
#include "stores/quorum/quorum_store.h"

#include <sys/epoll.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>
#include "base/fd.h"
#include "lock/store.h"
#include "stores/quorum/quorum.h"
#include "stores/quorum/restart_guard.h"

namespace rlock {

// Receives the messages to one owner from several servers.

class QuorumListener final : public Listener {
 public:
  // `listeners`: one for each server, which receive the releases of all `locks` already. With fewer than `least` listeners left,
  // heard() returns an Error. A message is passed on after a pause of `backoff`, because all waiters receive the message at once,
  // from one server sooner than from the next.
  QuorumListener(std::vector<std::unique_ptr<Listener>> listeners, std::size_t locks, std::size_t least,
                 std::shared_ptr<Backoff> backoff);

  [[nodiscard]] int fd() const override { return m_epoll.get(); }
  Result<Hints> heard(const Clock& clock) override;
  Result<Done> hear_releases(std::size_t, const CallLimits&) override { return Done{}; }
  Result<Done> hear_as_holder(std::span<const Owner> owners, const CallLimits& limit) override;

 private:
  Result<Done> enough_left() const;

  std::vector<std::unique_ptr<Listener>> m_listeners;
  std::size_t m_locks;
  std::size_t m_least;
  std::shared_ptr<Backoff> m_backoff;
  Fd m_epoll;
};

namespace {

// The outer hold's number is the one that a quorum agreed on, if any server knows it. A server that was late to grant
// may have granted a greater one.
Granted outer_grant(const Answers<ReentryResult>& answers, const LeaseTerm& lease)
{
  const Granted agreed = greatest_grant(answers, lease, [](const Granted& granted) { return granted.agreed; });
  return agreed.fence > 0 ? agreed : greatest_grant(answers, lease, [](const Granted&) { return true; });
}

// There is a refusal. AlreadyDone goes before NotHeld.
ReentryResult refusal_in(const Answers<ReentryResult>& answers)
{
  std::optional<ReentryResult> refusal;
  for (const ReentryResult* const answer : values_in(answers)) {
    if (!std::holds_alternative<Granted>(*answer) && (!refusal || std::holds_alternative<AlreadyDone>(*answer))) {
      refusal = *answer;
    }
  }
  return *refusal;
}

bool is_renewed(const Renewal& renewal) { return std::holds_alternative<Renewed>(renewal); }

Result<Renewal> merged_renewal(const Answers<Renewal>& answers, std::size_t quorum)
{
  const Decision decision = decide_proof(final_tally(tally(answers, is_renewed)), quorum);
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  Renewed kept{.lease = std::nullopt, .forced = std::nullopt};
  std::optional<NotHeld> lost;
  for (const Renewed* const one : alternatives_in<Renewed>(answers)) {
    kept.forced = one->forced ? one->forced : kept.forced;
  }
  for (const NotHeld* const gone : alternatives_in<NotHeld>(answers)) {
    const auto forced = gone->forced || !lost ? gone->forced : lost->forced;
    // A server that never granted the hold only knows that it is not there.
    lost = !lost || lost->cause == LossCause::gone || gone->cause == LossCause::revoked ? *gone : *lost;
    lost->forced = forced;
    lost->at.reset();
  }
  if (decision != Decision::carried) {
    return Renewal{lost.value_or(NotHeld{})};
  }
  kept.lease = lease_of_quorum(answers, quorum);  // nullopt: the servers were only asked
  return Renewal{kept};
}

// Merges the answers that agree with the decision. StillHeld takes precedence: if any server says so, an outer hold is left. Then an
// earlier release: servers that it did not reach still had the hold.
Release merged_release(const Answers<Release>& answers, bool is_released)
{
  std::optional<Release> merged;
  for (const Release* const answer : values_in(answers)) {
    if (std::holds_alternative<NotHeld>(*answer) == is_released) {
      continue;
    }
    const bool was_earlier = merged && was_released_before(*merged);
    if (!merged || std::holds_alternative<StillHeld>(*answer) || (!was_earlier && was_released_before(*answer))) {
      merged = *answer;
    }
  }
  return *merged;
}

using ListenerPtr = std::unique_ptr<Listener>;

Result<ListenerPtr> listen_for_releases(QuorumServer& server, std::span<const LockSpec> specs, const Owner& owner,
                                        const CallLimits& limit)
{
  auto listener = server.store->listen(specs, owner, limit);
  for (std::size_t which = 0; listener && which < specs.size(); ++which) {
    RETURN_IF_ERROR((*listener)->hear_releases(which, limit));
  }
  return listener;
}

}  // namespace

QuorumStore::QuorumStore(std::vector<QuorumServer> servers, QuorumPolicy policy, const Clock& clock,
                         std::unique_ptr<Rng> rng)
    : m_policy(policy), m_clock(clock), m_rng(std::move(rng)), m_backoff(std::make_shared<Backoff>(*m_rng))
{
  for (QuorumServer& server : servers) {
    m_workers.push_back(std::make_unique<ServerWorker>(std::move(server)));
  }
}

QuorumStore::~QuorumStore() { stop_threads(); }

void QuorumStore::stop_threads()
{
  constexpr Millis look_every{1};
  const Instant over = m_clock.now() + unresponsive_grace;
  for (const auto& worker : m_workers) {
    worker->interrupt_for_next();
  }
  work_without_threads({.deadline = over, .stop = StopToken::never()});
  const auto is_idle = [](const auto& worker) { return worker->is_idle(); };
  while (m_clock.now() < over && !std::all_of(m_workers.begin(), m_workers.end(), is_idle)) {
    m_clock.sleep_until(m_clock.now() + look_every, StopToken::never());
  }
  for (const auto& worker : m_workers) {
    worker->stop_thread();
  }
}

// Each server has its part of the time that is left, so one that hangs leaves time for the others.
void QuorumStore::work_without_threads(const CallLimits& limit)
{
  std::vector<ServerWorker*> waiting;
  for (const auto& worker : m_workers) {
    if (worker->needs_work_here()) {
      waiting.push_back(worker.get());
    }
  }
  for (std::size_t done = 0; done < waiting.size(); ++done) {
    waiting[done]->work_here(share_of(limit, m_clock.now(), waiting.size() - done));
  }
}

// Writes the number back again, because some servers may have granted late.
Result<ReentryResult> QuorumStore::reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit)
{
  const std::size_t quorum = quorum_of(spec);
  const Millis within = std::chrono::ceil<Millis>(limit.deadline - m_clock.now());
  const auto [answers, decision] = prove<ReentryResult>(
      Subject{topic_of(spec.name, hold)}, quorum, limit,
      [spec, hold, &clock = m_clock](QuorumServer& server, const CallLimits& until) {
        return with_told_lease(server.store->reenter(spec, hold, until), server, clock, until);
      },
      [](const ReentryResult& entry) { return std::holds_alternative<Granted>(entry); });
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  if (decision == Decision::refused) {
    for (std::size_t i = 0; i < size(); ++i) {
      post_release(i, spec, hold, false, within);
    }
    work_without_threads({.deadline = m_clock.now() + within, .stop = StopToken::never()});
    return refusal_in(answers);
  }
  const Granted granted = outer_grant(answers, lease_of_quorum(answers, quorum).value());
  ASSIGN_OR_RETURN(const auto raised,
                   quorum == size() ? Result(true) : raise_everywhere(spec, hold.owner, granted.fence, limit));
  return raised ? Result<ReentryResult>(granted)
                : Result<ReentryResult>(Error{ErrorCode::unreachable, "the lock was lost meanwhile"});
}

Result<bool> QuorumStore::raise_everywhere(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                                           const CallLimits& limit)
{
  const auto [answers, decision] = prove<bool>(
      repeated(spec.name, owner), quorum_of(spec), limit,
      [spec, owner, fence](QuorumServer& server, const CallLimits& within) {
        return server.store->raise_fence(spec, owner, fence, within);
      },
      [](bool raised) { return raised; });
  return decision == Decision::unknown ? Result<bool>(no_quorum(answers, quorum_of(spec)))
                                       : Result<bool>(decision == Decision::carried);
}

Result<Renewal> QuorumStore::renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                                   const CallLimits& limit)
{
  const auto request = [spec, owner, options, &clock = m_clock](QuorumServer& server, const CallLimits& within) {
    return with_told_lease(server.store->renew(spec, owner, options, within), server, clock, within);
  };
  return renew_by(request, spec, owner, limit);
}

Result<Renewal> QuorumStore::renew_hold(const LockSpec& spec, const Hold& hold, const RenewOptions& options,
                                        const CallLimits& limit)
{
  const auto request = [spec, hold, options, &clock = m_clock](QuorumServer& server, const CallLimits& within) {
    return with_told_lease(server.store->renew_hold(spec, hold, options, within), server, clock, within);
  };
  return renew_by(request, spec, hold, limit);
}

namespace {

using Renewals = std::vector<Result<Renewal>>;

Renewals renew_on(QuorumServer& server, std::span<const RenewalCall> calls, const Clock& clock, const CallLimits& limit)
{
  Renewals answers = server.store->renew_each(calls, limit);
  for (Result<Renewal>& each : answers) {
    each = with_told_lease(std::move(each), server, clock, limit);
  }
  return answers;
}

// How many of the locks each of the servers was asked about.
std::size_t count_asked(const Answers<Renewals>& all, std::size_t most)
{
  for (const auto& each : all) {
    most = each && *each ? std::min(most, (**each).size()) : most;
  }
  return most;
}

// What the servers say of lock number `which`.
Answers<Renewal> answers_about(std::size_t which, const Answers<Renewals>& all)
{
  Answers<Renewal> answers;
  for (const auto& each : all) {
    answers.push_back(!each    ? std::nullopt
                      : !*each ? std::optional(Result<Renewal>(each->error()))
                               : std::optional((**each)[which]));
  }
  return answers;
}

// A server that answered for no lock has not answered.
Result<Renewals> answered_by(Renewals renewals)
{
  const bool answered =
      std::ranges::any_of(renewals, [](const Result<Renewal>& each) { return static_cast<bool>(each); });
  return answered || renewals.empty() ? Result(std::move(renewals)) : Result<Renewals>(renewals.front().error());
}

}  // namespace

Renewals QuorumStore::renew_each(std::span<const RenewalCall> calls, const CallLimits& limit)
{
  if (calls.size() == 1) {
    return LockStore::renew_each(calls, limit);
  }
  const auto pending = post_all<Renewals>(repeated(calls.front().spec.name, calls.front().owner), limit,
                                          [all = std::vector(calls.begin(), calls.end()), &clock = m_clock](
                                              QuorumServer& server, const CallLimits& within) {
                                            return answered_by(renew_on(server, all, clock, within));
                                          })
                           .pending;
  const auto decision_on = [&](std::size_t which, const Answers<Renewals>& answers) {
    return decide_proof(tally(answers_about(which, answers), is_renewed), quorum_of(calls[which].spec));
  };
  pending->wait(m_clock, limit, [&](const Answers<Renewals>& so_far) {
    bool is_open = false;
    for (std::size_t i = 0; i < count_asked(so_far, calls.size()) && !is_open; ++i) {
      is_open = decision_on(i, so_far) == Decision::open;
    }
    return !is_open;
  });
  const Answers<Renewals> all = pending->take();
  Renewals merged;
  for (std::size_t i = 0; i < count_asked(all, calls.size()); ++i) {
    merged.push_back(merged_renewal(answers_about(i, all), quorum_of(calls[i].spec)));
  }
  return merged;
}

Result<Renewal> QuorumStore::renew_by(const AskForRenewal& request, const LockSpec& spec, const Hold& hold,
                                      const CallLimits& limit)
{
  const std::size_t quorum = quorum_of(spec);
  return merged_renewal(prove<Renewal>(repeated(spec.name, hold), quorum, limit, request, is_renewed).answers, quorum);
}

// The process may end after a release, so a request that is under way to a server that hangs is interrupted, and the
// release can be sent to that server.
Result<Release> QuorumStore::release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& release_options,
                                     const CallLimits& limit)
{
  const std::size_t quorum = quorum_of(spec);
  const auto count = [](const Answers<Release>& answers) {
    return tally(answers, [](const Release& release) { return !std::holds_alternative<NotHeld>(release); });
  };
  const auto request = [spec, hold, release_options](QuorumServer& server, const CallLimits& within) {
    return server.store->release(spec, hold, release_options, within);
  };
  const Subject subject{topic_of(spec.name, hold), ServerWorker::PostMode::interrupt};
  const auto answers = ask_all<Release>(subject, limit, request, [&](const auto& so_far) {
    return decide_proof(count(so_far), quorum) != Decision::open;
  });
  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  return merged_release(answers, decision == Decision::carried);
}

void QuorumStore::post_release(std::size_t server, const LockSpec& spec, const Hold& hold, bool announced,
                               Millis within)
{
  const auto task = [spec, hold, announced, within, &clock = m_clock](QuorumServer& at, const CallLimits& limit) {
    const ReleaseOptions release_options{.announced = announced, .result = {.outcome = Outcome::unused}};
    const auto released = at.store->release(spec, hold, release_options, earlier(limit, clock.now() + within));
    if (!released) {
      at.unreleased.push_back({.spec = spec, .hold = hold, .expires_at = clock.now() + spec.ttl});
    }
    return static_cast<bool>(released);
  };
  m_workers[server]->post(topic_of(spec.name, hold), ServerWorker::PostMode::replace, task);
}

// A quorum of servers is enough, because a holder announces its release on at least one of them.
Result<std::unique_ptr<Listener>> QuorumStore::listen(std::span<const LockSpec> specs, const Owner& owner,
                                                      const CallLimits& limit)
{
  auto [answers, decision] = prove<ListenerPtr>(
      Subject{"listen " + topic_of(specs.front().name, owner)}, majority(), limit,
      [all = std::vector(specs.begin(), specs.end()), owner](QuorumServer& server, const CallLimits& within) {
        return listen_for_releases(server, all, owner, within);
      },
      [](const ListenerPtr&) { return true; });
  if (decision != Decision::carried) {
    return no_quorum(answers, majority());
  }
  std::vector<ListenerPtr> listeners;
  for (auto& answer : answers) {
    if (answer && *answer) {
      listeners.push_back(std::move(**answer));
    }
  }
  return ListenerPtr(std::make_unique<QuorumListener>(std::move(listeners), specs.size(), majority(), m_backoff));
}

QuorumListener::QuorumListener(std::vector<std::unique_ptr<Listener>> listeners, std::size_t locks, std::size_t least,
                               std::shared_ptr<Backoff> backoff)
    : m_listeners(std::move(listeners)),
      m_locks(locks),
      m_least(least),
      m_backoff(std::move(backoff)),
      m_epoll(::epoll_create1(EPOLL_CLOEXEC))
{
  for (const auto& listener : m_listeners) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    ::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, listener->fd(), &event);
  }
}

Result<Done> QuorumListener::enough_left() const
{
  return m_listeners.size() < m_least
             ? Result<Done>(Error{ErrorCode::unreachable, "lost the subscriptions at too many servers"})
             : Result<Done>(Done{});
}

// Subscribes on one server after the other, and leaves out the servers that do not answer in time.
Result<Done> QuorumListener::hear_as_holder(std::span<const Owner> owners, const CallLimits& limit)
{
  std::erase_if(m_listeners,
                [&](const std::unique_ptr<Listener>& listener) { return !listener->hear_as_holder(owners, limit); });
  return enough_left();
}

// A server that closes its connection may have lost the lock as well, so the owner looks at once.
Result<Hints> QuorumListener::heard(const Clock& clock)
{
  Hints all(m_locks);
  const std::size_t before = m_listeners.size();
  std::erase_if(m_listeners, [&](const std::unique_ptr<Listener>& listener) {
    const auto hints = listener->heard(clock);
    for (std::size_t lock = 0; hints && lock < m_locks; ++lock) {
      const auto in = (*hints)[lock].look_in;
      all[lock].look_in = in ? std::min(all[lock].look_in.value_or(*in), *in) : all[lock].look_in;
    }
    return !hints;
  });
  RETURN_IF_ERROR(enough_left());
  for (Hint& hint : all) {
    if (m_listeners.size() < before) {
      hint.look_in = Millis{0};
    }
    if (hint.look_in) {
      *hint.look_in += m_backoff->draw();
    }
  }
  return all;
}

}  // namespace rlock
