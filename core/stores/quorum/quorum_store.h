// SPDX-License-Identifier: Apache-2.0
// A lock on several independent servers (Redlock): the client that holds it on a quorum of them is the holder.
//
// All servers are asked at the same time, each on a thread of its own, and the store answers as soon as further answers
// cannot change the result. A server that is down, slow, read-only or hung counts as a no and delays nothing unless it
// is needed. An attempt that is not granted is released on all servers, also on those that did not answer, and its
// owner is never used again, so that a release that arrives late cannot end a later grant. When several clients get a
// part of the servers each, the vote is split (Busy::split_vote): the caller asks again after a random pause. There is no
// queue, because the queues of N servers have no common order: a waiter waits for a message from any server, for
// Busy::again_in at most.
//
// The fencing number. Each server grants max(last + 1, its time). The lock's number is the greatest that was granted,
// and the store writes it back to a quorum before the lock counts as taken. Otherwise the number would not always grow:
// the greatest may come from a server whose clock is ahead and that has no part in the next quorum. After the write
// every later quorum shares a server that knows the number and grants a greater one. That costs one more round trip,
// except with QuorumRule::all. The number may not grow across a restart that loses a server's data while clocks are
// further apart than the longest ttl in use. Two holders of permits have the same number if the servers grant their permits in
// the same microsecond.
//
// The restart guard. A server that lost its data may have forgotten a lock that is still held elsewhere. So each server
// has a marker that tells since when it has its data (lua/single/marker.lua), and its grants count only when that is
// longer ago than the longest ttl in use. Each grant tells every server its ttl, renewals do so now and then, and the
// longest ttl that any server knows decides. When a server counts, its marker records that fact, so that a longer ttl that is
// used later does not exclude the server. A server that rlock uses for the first time waits too, because a new server looks like
// a flushed one. An attempt that fails only because too few servers are old enough is Busy, with the reason in
// Busy::not_ready. The guard does not notice: a step of the server's clock forwards while it waits; the loss of the data of
// all servers at once, the longest ttl included (then the ttl of the request decides); a longer ttl that only silent
// servers know; clients that disagree about the guard.
//
// A server that comes back after the lock was taken has no part in it, because no client re-creates a key that is gone.
// A lock that lives through outages is held on fewer servers; the next acquisition uses all of them again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "lock/store.h"
#include "stores/quorum/quorum.h"
#include "stores/quorum/restart_guard.h"
#include "stores/quorum/server_worker.h"

namespace rlock {

struct Subject;

struct QuorumPolicy {
  QuorumRule rule = QuorumRule::majority;
  // How old the data of a server must be, so that its grant counts; nullopt: as old as the longest ttl in use.
  std::optional<Millis> restart_guard = std::nullopt;
};

class QuorumStore final : public LockStore {
 public:
  // `servers`: at least two, of which each can join a quorum (Traits). `clock` must outlive the store. Throws std::system_error when there
  // is no free descriptor.
  QuorumStore(std::vector<QuorumServer> servers, QuorumPolicy policy, const Clock& clock, std::unique_ptr<Rng> rng);
  ~QuorumStore() override;  // gives the workers a moment to send what is posted
  QuorumStore(const QuorumStore&) = delete;
  QuorumStore& operator=(const QuorumStore&) = delete;

  Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& options,
                          const CallLimits& limit) override;
  Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit) override;
  Result<bool> is_queued(const LockSpec&, const Owner&, const CallLimits&) override { return false; }
  Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                        const CallLimits& limit) override;
  std::vector<Result<Renewal>> renew_each(std::span<const RenewalCall> calls, const CallLimits& limit) override;
  Result<Renewal> renew_hold(const LockSpec& spec, const Hold& hold, const RenewOptions& options,
                             const CallLimits& limit) override;
  Result<Release> release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& release_options,
                          const CallLimits& limit) override;
  Result<LockState> inspect(const LockName& name, const CallLimits& limit) override;
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                           const CallLimits& limit) override;
  void drop_connection() override {}  // each server's connection goes with the request that failed on it
  void stop_threads() override;

  [[nodiscard]] Traits traits() const override { return {.releases_refused_attempts = true, .has_event_log = false}; }
  Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) override;
  Result<std::vector<LockState>> list(std::string_view pattern, const PerAnswer& limits) override;
  Result<std::vector<LockState>> list_held(std::span<const LockName> names, const PerAnswer& limits) override;
  Result<std::vector<LockState>> states_of(std::span<const LockName> names, const PerAnswer& limits) override;
  Result<bool> forget_success(const LockName& name, const CallLimits& limit) override;
  Result<std::vector<LockName>> find_known(std::string_view pattern, const PerAnswer& limits) override;
  Result<std::vector<LockHistory>> past_runs(std::span<const LockName> names, LogPart part,
                                             const PerAnswer& limits) override;
  Result<Done> keep_runs(const LockName& name, Millis history, const PerAnswer& limits) override;
  Result<Forgotten> forget_runs(const LockName& name, const CallLimits& limit) override;
  Result<Done> note_skipped(const LockSpec& spec, const Owner& owner, const SkippedRun& run,
                            const CallLimits& limit) override;

 private:
  using Locks = std::vector<LockState>;
  // Asks each server for locks by `request(store, limits)`, and merges the answers.
  template <typename Request>
  Result<Locks> merged_lists(const PerAnswer& limits, Request request);

  template <typename T>
  struct Query {
    std::shared_ptr<PendingReplies<Result<T>>> pending;
    std::vector<bool> unresponsive;  // in the order of the servers
  };
  template <typename T>
  struct Proof {
    Answers<T> answers;
    Decision decision;
  };
  template <typename T, typename Request>
  Query<T> post_all(const Subject& subject, const CallLimits& limit, Request request);
  template <typename T, typename Request, typename MeansYes>
  Proof<T> prove(const Subject& subject, std::size_t quorum, const CallLimits& limit, Request request,
                 MeansYes means_yes);
  template <typename T, typename Request, typename Enough>
  Answers<T> ask_all(const Subject& subject, const CallLimits& limit, Request request, Enough enough);
  template <typename T, typename Request>
  Result<Answers<T>> ask_at_least(std::size_t needed, const Subject& subject, const CallLimits& limit, Request request);

  void work_without_threads(const CallLimits& limit);

  Answers<Vote> ask_for_lock(const LockSpec& spec, const Owner& owner, const CallLimits& limit);
  Result<Done> confirm_grant(const LockSpec& spec, const Owner& owner, const Granted& granted,
                             const std::set<std::string>& counting, const CallLimits& limit);
  Result<Attempt> not_granted(const LockSpec& spec, const Answers<Vote>& votes, Millis took, Millis within);
  Attempt refused(const LockSpec& spec, const Answers<Attempt>& answers, Millis took);
  Result<bool> raise_everywhere(const LockSpec& spec, const Owner& owner, std::uint64_t fence, const CallLimits& limit);
  void tell_longest_ttl(const Answers<Vote>& votes, Millis within);
  void take_back(const LockSpec& spec, const Owner& owner, const Answers<Attempt>& answers, bool announced,
                 Millis within);
  void post_release(std::size_t server, const LockSpec& spec, const Hold& hold, bool announced, Millis within);

  using AskForRenewal = std::function<Result<Renewal>(QuorumServer&, const CallLimits&)>;
  Result<Renewal> renew_by(const AskForRenewal& request, const LockSpec& spec, const Hold& hold,
                           const CallLimits& limit);
  // Of the answers of a majority or more.
  [[nodiscard]] LockState merged(const LockName& name, const Answers<LockState>& answers) const;

  [[nodiscard]] std::size_t size() const { return m_workers.size(); }
  [[nodiscard]] std::size_t majority() const { return size() / 2 + 1; }
  [[nodiscard]] std::size_t quorum_of(const LockSpec& spec) const
  {
    return quorum_size(m_policy.rule, spec.kind, size());
  }

  QuorumPolicy m_policy;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  std::shared_ptr<Backoff> m_backoff;  // shared with the listeners
  std::vector<std::unique_ptr<ServerWorker>> m_workers;
};

// How QuorumStore asks its servers. Private to QuorumStore.

// How long a query waits for a server that has not answered lately: long enough to send the request.
constexpr Millis unresponsive_grace{50};

inline CallLimits earlier(const CallLimits& limit, Instant deadline)
{
  return {.deadline = std::min(limit.deadline, deadline), .stop = limit.stop};
}

// What a request is about, and what becomes of waiting requests of the same topic.
struct Subject {
  std::string topic;
  ServerWorker::PostMode mode = ServerWorker::PostMode::replace;
};
inline std::string topic_of(const LockName& name, const Hold& hold) { return hold.token() + " " + name.text(); }
inline Subject repeated(const LockName& name, const Hold& hold)
{
  return {topic_of(name, hold), ServerWorker::PostMode::repeat};
}

// The greatest number and count of the grants for which `counts(grant)` is true, under `lease`.
template <typename T, typename Counts>
Granted greatest_grant(const Answers<T>& answers, const LeaseTerm& lease, Counts counts)
{
  Granted greatest{.fence = 0, .count = 1, .lease = lease};
  for (const Granted* const granted : alternatives_in<Granted>(answers)) {
    if (counts(*granted)) {
      greatest.fence = std::max(greatest.fence, granted->fence);
      greatest.count = std::max(greatest.count, granted->count);
    }
  }
  return greatest;
}

// A quorum of the servers gave leases that last as long as this one, or longer. nullopt: fewer gave a lease.
template <typename T>
std::optional<LeaseTerm> lease_of_quorum(const Answers<T>& answers, std::size_t quorum)
{
  std::vector<LeaseTerm> leases;
  for (const T* const answer : values_in(answers)) {
    if (const LeaseTerm* const lease = lease_in(*answer)) {
      leases.push_back(*lease);
    }
  }
  if (leases.size() < quorum) {
    return std::nullopt;
  }
  std::ranges::sort(leases, std::ranges::greater{},
                    [](const LeaseTerm& lease) { return LeaseBudget(lease).valid_until(); });
  return leases[quorum - 1];
}

// Posts `request(server, limits)` to all servers. It runs to its end also when the caller waits no longer; where the system has
// no thread left, it has run when this function returns.
template <typename T, typename Request>
QuorumStore::Query<T> QuorumStore::post_all(const Subject& subject, const CallLimits& limit, Request request)
{
  auto pending = std::make_shared<PendingReplies<Result<T>>>(size());
  std::vector<bool> unresponsive;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto task = [pending, i, deadline = limit.deadline, request](QuorumServer& server, const CallLimits& within) {
      Result<T> answer = request(server, earlier(within, deadline));
      const bool answered = static_cast<bool>(answer);
      pending->put(i, std::move(answer));
      return answered;
    };
    unresponsive.push_back(m_workers[i]->post(subject.topic, subject.mode, task));
  }
  work_without_threads(limit);
  return {std::move(pending), std::move(unresponsive)};
}

// Decides whether a quorum says yes, and returns as soon as further answers cannot change the decision.
template <typename T, typename Request, typename MeansYes>
QuorumStore::Proof<T> QuorumStore::prove(const Subject& subject, std::size_t quorum, const CallLimits& limit,
                                         Request request, MeansYes means_yes)
{
  const auto pending = post_all<T>(subject, limit, std::move(request)).pending;
  pending->wait(m_clock, limit, [&](const Answers<T>& so_far) {
    return decide_proof(tally(so_far, means_yes), quorum) != Decision::open;
  });
  auto answers = pending->take();
  const Decision decision = decide_proof(final_tally(tally(answers, means_yes)), quorum);
  return {std::move(answers), decision};
}

// Asks all servers and waits for them. If the answers are enough without the unresponsive servers, those get
// `unresponsive_grace`.
template <typename T, typename Request, typename Enough>
Answers<T> QuorumStore::ask_all(const Subject& subject, const CallLimits& limit, Request request, Enough enough)
{
  const auto [pending, unresponsive] = post_all<T>(subject, limit, std::move(request));
  pending->wait(m_clock, limit, [&unresponsive = unresponsive, &enough](const Answers<T>& answers) {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i] && !unresponsive[i]) {
        return false;
      }
    }
    return all_replied(answers) || static_cast<bool>(enough(answers));
  });
  pending->wait(m_clock, {.deadline = std::min(limit.deadline, m_clock.now() + unresponsive_grace), .stop = limit.stop},
                [](const Answers<T>& answers) { return all_replied(answers); });
  return pending->take();
}

}  // namespace rlock
