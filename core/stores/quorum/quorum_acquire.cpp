// SPDX-License-Identifier: Apache-2.0
// How QuorumStore takes a lock.
#include "lock/lease_budget.h"
#include "stores/quorum/quorum_store.h"
#include "stores/quorum/restart_guard.h"

#include <map>

namespace rlock {
namespace {

constexpr Millis never{std::chrono::hours{24 * 365}};
constexpr Millis silent_pause{100};  // the time between two looks at a lock whose holder does not publish its release
constexpr Millis shared_pause{500};  // between looks at a lock of which no server can tell when there is room

Tally grants(const Answers<Attempt>& answers)
{
  return tally(answers, [](const Attempt& attempt) { return std::holds_alternative<Granted>(attempt); });
}

const AlreadyDone* done_in(const Answers<Attempt>& answers)
{
  const auto all = alternatives_in<AlreadyDone>(answers);
  return all.empty() ? nullptr : all.front();
}

// Releases what could not be released earlier, of attempts that were made under other owners. Otherwise the server
// would refuse the lock to this owner.
Result<Done> release_earlier_attempts(QuorumServer& server, const Clock& clock, const CallLimits& limit)
{
  while (!server.unreleased.empty()) {
    const Unreleased& first = server.unreleased.front();
    if (clock.now() < first.expires_at) {
      RETURN_IF_ERROR(server.store->release(first.spec, first.hold, {.announced = false}, limit));
    }
    server.unreleased.erase(server.unreleased.begin());
  }
  return Done{};
}

// The marker is read after the answer: if the server had lost its data in between, the marker would be gone as well. It
// is read also when the server refuses, because the server may know a longer ttl than those that grant.
Result<Vote> vote_of(QuorumServer& server, const LockSpec& spec, const Owner& owner, const Clock& clock,
                     const CallLimits& limit)
{
  RETURN_IF_ERROR(release_earlier_attempts(server, clock, limit));
  ASSIGN_OR_RETURN(auto attempt, server.store->acquire(spec, owner, {}, limit));
  Vote vote{.shown = server.shown, .attempt = std::move(attempt), .data = std::nullopt};
  if (!server.marker) {
    return vote;
  }
  const auto data = server.marker({}, limit);
  server.has_data_since = data ? data->since : 0;
  if (!data) {
    return data.error();
  }
  vote.data = *data;
  return vote;
}

// The holder that most servers name, and how many do.
struct NamedHolder {
  const Busy* busy;
  std::size_t servers;
};
std::optional<NamedHolder> most_named(const Answers<Attempt>& answers)
{
  std::map<std::string, NamedHolder> holders;
  std::optional<NamedHolder> most;
  for (const Busy* const busy : alternatives_in<Busy>(answers)) {
    if (!busy->holder) {
      continue;
    }
    NamedHolder& named = holders.try_emplace(busy->holder->owner.text(), NamedHolder{busy, 0}).first->second;
    ++named.servers;
    if (!most || named.servers > most->servers) {
      most = named;
    }
  }
  return most;
}

// How long until a quorum of servers can grant, if no lock is released before.
Millis ttl_of_quorum(const Answers<Attempt>& answers, std::size_t quorum)
{
  std::vector<Millis> waits;
  for (const auto& answer : answers) {
    const bool answered = answer && *answer;
    const Busy* busy = answered ? std::get_if<Busy>(&**answer) : nullptr;
    waits.push_back(busy != nullptr ? busy->ttl.value_or(never) : answered ? Millis{0} : never);
  }
  std::sort(waits.begin(), waits.end());
  return waits[quorum - 1];
}

}  // namespace

Result<Attempt> QuorumStore::acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions&,
                                     const CallLimits& limit)
{
  const Instant asked_at = m_clock.now();
  const Millis within = std::chrono::ceil<Millis>(limit.deadline - asked_at);
  const auto votes = ask_for_lock(spec, owner, limit);
  const Millis needed = needed_age(votes, spec.ttl, m_policy.restart_guard);
  const auto answers = counted_attempts(votes, needed);
  const auto* done = done_in(answers);
  const bool carried = decide_grant(final_tally(grants(answers)), quorum_of(spec)) == Decision::carried;
  const auto lease = lease_of_quorum(answers, quorum_of(spec));
  if (done == nullptr && carried && lease) {
    const Granted granted = greatest_grant(answers, *lease, [](const Granted&) { return true; });
    const auto confirmed = confirm_grant(spec, owner, granted, counting_servers(votes, needed), limit);
    if (confirmed) {
      m_backoff->settled();
      return Attempt{granted};
    }
    take_back(spec, owner, answers, true, within);
    return confirmed.error();
  }
  take_back(spec, owner, answers, carried, within);
  if (done != nullptr) {
    return Attempt{*done};
  }
  if (limit.stop.requested()) {
    return Error{ErrorCode::interrupted, "interrupted"};
  }
  return not_granted(spec, votes, std::chrono::ceil<Millis>(m_clock.now() - asked_at), within);
}

// Decided by the settled votes in the first half of the time, then by all: the rest of the time is for confirm_grant.
Answers<Vote> QuorumStore::ask_for_lock(const LockSpec& spec, const Owner& owner, const CallLimits& limit)
{
  const auto is_decided = [&](const Answers<Vote>& votes) {
    const auto answers = counted_attempts(votes, needed_age(votes, spec.ttl, m_policy.restart_guard));
    return done_in(answers) != nullptr || decide_grant(grants(answers), quorum_of(spec)) != Decision::open;
  };
  const auto pending = post_all<Vote>(Subject{topic_of(spec.name, owner)}, limit,
                                      [spec, owner, &clock = m_clock](QuorumServer& server, const CallLimits& within) {
                                        return vote_of(server, spec, owner, clock, within);
                                      })
                           .pending;
  pending->wait(m_clock, share_of(limit, m_clock.now(), 2),
                [&](const Answers<Vote>& so_far) { return is_decided(settled_votes(so_far)); });
  pending->wait(m_clock, limit, is_decided);
  return pending->take();
}

// What is left to do once a quorum has granted: writes the fencing number back, tells the markers, and looks whether
// the lease has time left. `counting`: as counting_servers says.
Result<Done> QuorumStore::confirm_grant(const LockSpec& spec, const Owner& owner, const Granted& granted,
                                        const std::set<std::string>& counting, const CallLimits& limit)
{
  const bool any_quorum_knows = quorum_of(spec) == size();
  const auto request = [spec, owner, fence = granted.fence, length = granted.lease.length, any_quorum_knows, counting,
                        &clock = m_clock](QuorumServer& server, const CallLimits& within) -> Result<bool> {
    RETURN_IF_ERROR(tell_grant(server, length, counting.contains(server.shown), clock, within));
    return any_quorum_knows ? Result(true) : server.store->raise_fence(spec, owner, fence, within);
  };
  const auto [answers, decision] =
      prove<bool>(repeated(spec.name, owner), quorum_of(spec), limit, request, [](bool raised) { return raised; });
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum_of(spec));
  }
  if (decision != Decision::carried || m_clock.now() >= LeaseBudget(granted.lease).valid_until()) {
    return Error{ErrorCode::server_not_ready,
                 std::string("the servers need longer to answer than the lease lasts") + give_longer_lease};
  }
  return Done{};
}

Result<Attempt> QuorumStore::not_granted(const LockSpec& spec, const Answers<Vote>& votes, Millis took, Millis within)
{
  const std::size_t quorum = quorum_of(spec);
  const Millis needed = needed_age(votes, spec.ttl, m_policy.restart_guard);
  const auto answers = counted_attempts(votes, needed);
  const Tally granted = grants(answers);
  if (decide_grant(final_tally(granted), quorum) == Decision::refused) {
    return refused(spec, answers, took);
  }
  const Error error = no_quorum(answers, quorum);
  tell_longest_ttl(votes, within);
  const auto in = old_enough_in(votes, needed, quorum - granted.yes);
  return in ? Result<Attempt>(Busy{.ttl = *in,
                                   .holder = std::nullopt,
                                   .waiters_ahead = 1,
                                   .again_in = *in + m_backoff->draw(),
                                   .not_ready = error.text})
            : error;
}

// If one holder has a quorum, the caller waits until that holder releases or its ttl is over. Otherwise no client got the lock,
// and chance decides which client is first next time. For a lock with several holders each server may name another holder: such a
// lock counts as held if no server grants it. `waiters_ahead` is 1, not 0, because no server promises the next turn.
Attempt QuorumStore::refused(const LockSpec& spec, const Answers<Attempt>& answers, Millis took)
{
  const std::size_t quorum = quorum_of(spec);
  const auto named = most_named(answers);
  const bool silent = !kind_of(spec.kind).announces_release;
  const bool shares = !kind_of(spec.kind).is_always_exclusive;
  const bool clear = named && named->servers >= quorum;
  const bool split_vote = !clear && !(shares && grants(answers).yes == 0);
  if (split_vote) {
    m_backoff->split_vote(took);
  } else {
    m_backoff->settled();
  }
  const Millis ttl = ttl_of_quorum(answers, quorum);
  const Millis pause = split_vote ? Millis{0}
                       : silent   ? std::min(ttl, silent_pause)
                       : clear    ? ttl
                                  : std::min(ttl, shared_pause);
  // The server sets again_in when the lock is held as another kind, because that holder sends no message to this caller.
  const Millis by_server = named ? named->busy->again_in.value_or(pause) : pause;
  return Busy{.ttl = !split_vote && ttl < never ? std::optional{ttl} : std::nullopt,
              .holder = named ? named->busy->holder : std::nullopt,
              .waiters_ahead = 1,
              .silent = silent,
              .again_in = std::min(pause, by_server) + m_backoff->draw(),
              .split_vote = split_vote,
              .permits = number_of_permits(spec.kind)};
}

// Tells the servers that do not know the longest ttl: the server that knows it may be down at the next attempt.
void QuorumStore::tell_longest_ttl(const Answers<Vote>& votes, Millis within)
{
  const Millis longest = longest_ttl(votes, Millis{0});
  for (std::size_t i = 0; i < size(); ++i) {
    if (votes[i] && *votes[i] && (*votes[i])->data && (*votes[i])->data->longest_ttl < longest) {
      m_workers[i]->post(
          "marker", ServerWorker::PostMode::replace,
          [longest, within, &clock = m_clock](QuorumServer& server, const CallLimits& limit) {
            return static_cast<bool>(server.marker({.ttl = longest}, earlier(limit, clock.now() + within)));
          });
    }
  }
  work_without_threads({.deadline = m_clock.now() + within, .stop = StopToken::never()});
}

// Releases on all servers but those where another owner holds the lock: also where no answer came, because that server
// may have granted. Does not wait for the answers. `announced`: a lock that had less than a quorum is no news for
// waiters.
void QuorumStore::take_back(const LockSpec& spec, const Owner& owner, const Answers<Attempt>& answers, bool announced,
                            Millis within)
{
  for (std::size_t i = 0; i < size(); ++i) {
    const bool refused_it = answers[i] && *answers[i] && !std::holds_alternative<Granted>(**answers[i]);
    if (!refused_it) {
      post_release(i, spec, owner, announced, within);
    }
  }
  work_without_threads({.deadline = m_clock.now() + within, .stop = StopToken::never()});
}

}  // namespace rlock
