// SPDX-License-Identifier: Apache-2.0
// A lock on several independent servers at once (Redlock): held by who holds it on a quorum of them.
//
// Everybody is asked at the same time, each on a thread of its own, and the answer is there as soon as further answers
// cannot change it; servers that are down, slow, read-only or hung are a no, and delay nothing unless they are needed.
// An attempt that is not granted is released everywhere, also where no answer came, and its owner is never used again: a
// release that is delivered late must not end a later grant. When several clients got a part of the servers each, the
// attempt is tied (Busy::tied): the caller asks again after a random pause. There is no line, because N queues have no
// common order: a waiter waits for a word from any server (Busy::again_in says for how long at most).
//
// The fencing number. Each server gives out max(last + 1, its time); ours is the greatest of those that were granted,
// and it is written back to a quorum before the lock counts as taken. Without that it would not grow: the greatest may
// come from a server, one whose clock is ahead, that has no part in the next quorum. With it any later quorum shares a
// server with ours that has seen our number, and gives a greater one. That costs one round trip more, except with
// QuorumRule::all. It does not hold across a restart that loses a server's data while clocks are further apart than the
// longest ttl in use; and two who hold permits at the same time may, by a chance of one microsecond, have the same.
//
// A server that lost its data may have forgotten a lock that is still held elsewhere. So each server has a marker that tells since
// when it has its data (lua/single/marker.lua), and its grants count only when that is longer ago than the longest ttl in
// use. Each grant tells every server its ttl, renewals do now and then, and the longest that any server knows is taken. Once a
// server counts its marker says so: a longer ttl that is used later was not forgotten by it. Also
// a server that rlock is used on for the first time waits for that: whether it is new or was flushed cannot be told.
// An attempt that fails only because too few servers are old enough is Busy, with the reason in Busy::unfit.
// What the marker does not see: a step of the server's clock forwards, in the time between the loss and its being over; the loss
// of every server's data at once, longest ttl included (then the ttl that is asked for decides); a longer ttl that only servers
// know which do not answer; and clients that disagree about the restart guard.
//
// A server that comes back after the lock was taken has no part in it: nobody re-creates a key that is gone. So a
// lock that lives through outages gets narrower; the next acquisition is whole again.
#pragma once

#include "base/parallel_query.h"
#include "lock/store.h"
#include "store/quorum/quorum.h"
#include "store/quorum/server_worker.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rlock {

struct Subject;

// By server; missing: no answer so far.
template <typename T>
using Answers = Replies<Result<T>>;

// What a server said to a request for a lock.
struct Vote {
  std::string shown;
  Attempt attempt;
  std::optional<DataAge> data;  // missing: the server has no marker
};

struct QuorumPolicy {
  QuorumRule rule = QuorumRule::majority;
  // How old the data of a server must be for its grant to count; missing: as old as the longest ttl in use.
  std::optional<Millis> restart_guard = std::nullopt;
};

class QuorumStore final : public LockStore {
 public:
  // `clock` must outlive it; two servers at least. std::system_error: no descriptors to be had.
  QuorumStore(std::vector<QuorumServer> servers, QuorumPolicy policy, const Clock& clock, std::unique_ptr<Rng> rng);
  ~QuorumStore() override;  // gives what is still to be sent a moment to be sent
  QuorumStore(const QuorumStore&) = delete;
  QuorumStore& operator=(const QuorumStore&) = delete;

  Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& manner,
                          const CallLimits& limit) override;
  [[nodiscard]] bool takes_back() const override { return true; }
  Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit) override;
  Result<bool> is_queued(const LockSpec&, const Owner&, const CallLimits&) override { return false; }
  Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const CallLimits& limit) override;
  Result<Renewal> renew_hold(const LockSpec& spec, const Hold& hold, const CallLimits& limit) override;
  Result<bool> raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                           const CallLimits& limit) override;
  Result<Release> release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& release_options,
                          const CallLimits& limit) override;
  Result<LockState> inspect(const LockName& name, const CallLimits& limit) override;
  Result<std::vector<LockState>> list(std::string_view pattern, const PerAnswer& limits) override;
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                           const CallLimits& limit) override;
  Result<bool> forget_success(const LockName& name, const CallLimits& limit) override;
  Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) override;
  void forget() override {}  // each server's connection goes with the request that failed on it
  void rest() override;

 private:
  using AskForRenewal = std::function<Result<Renewal>(QuorumServer&, const CallLimits&)>;
  Result<Renewal> renew_by(const AskForRenewal& request, const LockSpec& spec, const Hold& hold,
                           const CallLimits& limit);

  template <typename T>
  struct Asked {
    std::shared_ptr<PendingReplies<Result<T>>> round;
    std::vector<bool> lame;  // whose answers are not worth waiting for
  };
  template <typename T, typename Request>
  Asked<T> post_all(const Subject& subject, Instant deadline, Request request);
  template <typename T, typename Request, typename Enough>
  Answers<T> consult(const Subject& subject, const CallLimits& limit, Request request, Enough enough);
  template <typename T, typename Request, typename Enough>
  Answers<T> consult_all(const Subject& subject, const CallLimits& limit, Request request, Enough enough);

  Answers<Vote> ask_for(const LockSpec& spec, const Owner& owner, std::size_t quorum, const CallLimits& limit);
  Result<Attempt> settle(const LockSpec& spec, const Owner& owner, const Granted& granted,
                         const std::set<std::string>& counting, Instant asked_at, const CallLimits& limit);
  void spread(const Answers<Vote>& votes, Millis longest, Millis within);
  void take_back(const LockSpec& spec, const Owner& owner, const Answers<Attempt>& answers, bool announced,
                 Millis within);
  void post_release(std::size_t member, const LockSpec& spec, const Hold& hold, bool announced, Millis within);
  Attempt refused(const LockSpec& spec, const Answers<Attempt>& answers, std::size_t quorum, Millis took);
  Result<LockState> merged(const LockName& name, Answers<LockState> answers) const;

  [[nodiscard]] std::size_t size() const { return m_members.size(); }
  [[nodiscard]] std::size_t majority() const { return size() / 2 + 1; }

  QuorumPolicy m_policy;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  std::shared_ptr<Backoff> m_backoff;  // shared with the listeners
  std::vector<std::unique_ptr<ServerWorker>> m_members;
};

}  // namespace rlock
