// SPDX-License-Identifier: Apache-2.0
// How QuorumStore takes a lock, and counts once more for who has it.
#include "base/duration.h"
#include "lock/validity.h"
#include "store/quorum/quorum_asking.h"
#include "store/quorum/quorum_store.h"

#include <map>

namespace rlock {
namespace {

constexpr Millis never{std::chrono::hours{24 * 365}};
constexpr Millis silent_pause{100};  // between looks at a holder that tells nobody when it is done
constexpr Millis shared_pause{500};  // where nobody can be told to have it

bool is_grant(const Attempt& attempt) { return std::holds_alternative<Granted>(attempt); }

Tally grants(const Answers<Attempt>& answers) { return tally(answers, is_grant); }

const AlreadyDone* done_in(const Answers<Attempt>& answers)
{
  for (const auto& answer : answers) {
    if (answer && *answer && std::holds_alternative<AlreadyDone>(**answer)) {
      return &std::get<AlreadyDone>(**answer);
    }
  }
  return nullptr;
}

// The greatest number of those that count.
template <typename T, typename Counts>
Granted greatest(const Answers<T>& answers, Counts counts)
{
  Granted all{.fence = 0, .count = 1};
  for (const auto& answer : answers) {
    const auto* granted = answer && *answer ? std::get_if<Granted>(&**answer) : nullptr;
    if (granted != nullptr && counts(*granted)) {
      all.fence = std::max(all.fence, granted->fence);
      all.count = std::max(all.count, granted->count);
    }
  }
  return all;
}

// The outer hold's: what was agreed on, wherever that is known.
Granted as_agreed(const Answers<ReentryResult>& answers)
{
  const Granted agreed = greatest(answers, [](const Granted& granted) { return granted.agreed; });
  return agreed.fence > 0 ? agreed : greatest(answers, [](const Granted&) { return true; });
}

// AlreadyDone goes before NotOurs. There is one.
ReentryResult refusal_in(const Answers<ReentryResult>& answers)
{
  std::optional<ReentryResult> refusal;
  for (const auto& answer : answers) {
    if (answer && *answer && !std::holds_alternative<Granted>(**answer) &&
        (!refusal || std::holds_alternative<AlreadyDone>(**answer))) {
      refusal = **answer;
    }
  }
  return *refusal;
}

// The longest ttl that any of the servers knows, or this one.
Millis longest_ttl(const Answers<Vote>& votes, Millis ttl)
{
  Millis longest = ttl;
  for (const auto& vote : votes) {
    if (vote && *vote && (*vote)->data) {
      longest = std::max(longest, (*vote)->data->longest_ttl);
    }
  }
  return longest;
}

// How long ago a server must have lost its data, if it did, for all locks that it forgot to be over.
Millis needed_age(const Answers<Vote>& votes, Millis ttl, const QuorumPolicy& policy)
{
  const Millis longest = policy.restart_guard.value_or(longest_ttl(votes, ttl));
  return longest + drift_allowed(longest);
}

// The votes that count already. A server that has not counted yet may do so by what another one, which is still silent, knows
// better: its vote is looked at when all have answered, or half of the time is over.
Answers<Vote> settled_votes(const Answers<Vote>& so_far)
{
  Answers<Vote> votes = so_far;
  const bool all = all_replied(votes);
  for (auto& vote : votes) {
    const bool unsure = vote && *vote && is_grant((*vote)->attempt) && (*vote)->data && !(*vote)->data->sure;
    if (unsure && !all) {
      vote.reset();
    }
  }
  return votes;
}

bool is_young(const Vote& vote, Millis needed)
{
  return is_grant(vote.attempt) && vote.data && !vote.data->sure && vote.data->age < needed;
}

Error too_young(const std::string& shown, Millis age, Millis needed)
{
  return {ErrorCode::unfit, shown + " has had its data for less than " + show_roughly(needed) +
                                " and may have forgotten locks; it counts in " + show_roughly(needed - age) +
                                " (--no-restart-guard if it keeps its data)"};
}

// The grant of a server that is too young does not count.
Answers<Attempt> counted(const Answers<Vote>& votes, Millis needed)
{
  Answers<Attempt> answers(votes.size());
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (!votes[i]) {
      continue;
    }
    if (!*votes[i]) {
      answers[i].emplace(votes[i]->error());
    } else if (const Vote& vote = **votes[i]; is_young(vote, needed)) {
      answers[i].emplace(too_young(vote.shown, vote.data->age, needed));
    } else {
      answers[i].emplace(vote.attempt);
    }
  }
  return answers;
}

// The servers whose grants count.
std::set<std::string> counting(const Answers<Vote>& votes, Millis needed)
{
  std::set<std::string> all;
  for (const auto& vote : votes) {
    if (vote && *vote && is_grant((*vote)->attempt) && !is_young(**vote, needed)) {
      all.insert((*vote)->shown);
    }
  }
  return all;
}

// When so many servers more will be old enough; nullopt: too few of them are too young.
std::optional<Millis> old_enough_in(const Answers<Vote>& votes, Millis needed, std::size_t more)
{
  std::vector<Millis> waits;
  for (const auto& vote : votes) {
    if (vote && *vote && is_young(**vote, needed)) {
      waits.push_back(needed - (*vote)->data->age);
    }
  }
  std::sort(waits.begin(), waits.end());
  return more > 0 && more <= waits.size() ? std::optional{waits[more - 1]} : std::nullopt;
}

// What could not be taken back earlier, of attempts that were made under other owners. It would refuse the lock to this one.
Result<Done> settle_unreleased(QuorumServer& server, const Clock& clock, const CallLimits& limit)
{
  while (!server.unreleased.empty()) {
    const Unreleased& first = server.unreleased.front();
    if (clock.now() < first.over) {
      const auto released = server.store->release(first.spec, first.hold, {.announced = false}, limit);
      if (!released) {
        return released.error();
      }
    }
    server.unreleased.erase(server.unreleased.begin());
  }
  return Done{};
}

// Who has the lock where we were refused, and on how many servers.
struct Other {
  const Busy* shown;
  std::size_t servers;
};
std::optional<Other> most_common(const Answers<Attempt>& answers)
{
  std::map<std::string, Other> others;
  std::optional<Other> most;
  for (const auto& answer : answers) {
    const Busy* busy = answer && *answer ? std::get_if<Busy>(&**answer) : nullptr;
    if (busy == nullptr || !busy->holder) {
      continue;
    }
    Other& other = others.try_emplace(busy->holder->owner.text(), Other{busy, 0}).first->second;
    ++other.servers;
    if (!most || other.servers > most->servers) {
      most = other;
    }
  }
  return most;
}

// When so many could grant, if nobody says anything before.
Millis ttl_of_quorum(const Answers<Attempt>& answers, std::size_t quorum)
{
  std::vector<Millis> waits;
  for (const auto& answer : answers) {
    const bool said = answer && *answer;
    const Busy* busy = said ? std::get_if<Busy>(&**answer) : nullptr;
    waits.push_back(busy != nullptr ? busy->ttl.value_or(never) : said ? Millis{0} : never);
  }
  std::sort(waits.begin(), waits.end());
  return waits[quorum - 1];
}

}  // namespace

Result<Attempt> QuorumStore::acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions&,
                                     const CallLimits& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const Instant asked_at = m_clock.now();
  const Millis within = std::chrono::ceil<Millis>(limit.deadline - asked_at);
  const auto votes = ask_for(spec, owner, quorum, limit);
  const Millis needed = needed_age(votes, spec.ttl, m_policy);
  const auto answers = counted(votes, needed);
  const Decision decision = decide_grant(final_tally(grants(answers)), quorum);
  const auto* done = done_in(answers);
  if (done == nullptr && decision == Decision::carried) {
    auto settled = settle(spec, owner, greatest(answers, [](const Granted&) { return true; }), counting(votes, needed),
                          asked_at, limit);
    if (!settled) {
      take_back(spec, owner, answers, true, within);
    }
    return settled;
  }
  take_back(spec, owner, answers, decision == Decision::carried, within);
  if (done != nullptr) {
    return Attempt{*done};
  }
  if (limit.stop.requested()) {
    return Error{ErrorCode::interrupted, "interrupted"};
  }
  if (decision != Decision::refused) {
    const Error error = no_quorum(answers, quorum);
    spread(votes, longest_ttl(votes, Millis{0}), within);
    const auto in = old_enough_in(votes, needed, quorum - grants(answers).yes);
    return in ? Result<Attempt>(Busy{.ttl = *in,
                                     .holder = std::nullopt,
                                     .place = 1,
                                     .again_in = *in + m_backoff->draw(),
                                     .unfit = error.text})
              : error;
  }
  return refused(spec, answers, quorum, std::chrono::ceil<Millis>(m_clock.now() - asked_at));
}

// The marker is read after the answer: had the server lost its data in between, the marker would be gone as well. It is read
// also of a server that refuses, because that one may know a longer ttl than those that grant.
Answers<Vote> QuorumStore::ask_for(const LockSpec& spec, const Owner& owner, std::size_t quorum,
                                   const CallLimits& limit)
{
  const auto request = [spec, owner, &clock = m_clock](QuorumServer& server, const CallLimits& within) -> Result<Vote> {
    const auto settled = settle_unreleased(server, clock, within);
    if (!settled) {
      return settled.error();
    }
    auto attempt = server.store->acquire(spec, owner, {}, within);
    if (!attempt) {
      return attempt.error();
    }
    if (!server.marker) {
      return Vote{.shown = server.shown, .attempt = *std::move(attempt), .data = std::nullopt};
    }
    const auto data = server.marker({}, within);
    server.has_data_since = data ? data->since : 0;
    return data ? Vote{.shown = server.shown, .attempt = *std::move(attempt), .data = *data}
                : Result<Vote>(data.error());
  };
  const auto is_decided = [&](const Answers<Vote>& votes) {
    const auto answers = counted(votes, needed_age(votes, spec.ttl, m_policy));
    return done_in(answers) != nullptr || decide_grant(grants(answers), quorum) != Decision::open;
  };
  const auto round = post_all<Vote>(Subject{topic_of(spec.name, owner)}, limit.deadline, request).round;
  const Instant now = m_clock.now();
  const Instant half = now + (limit.deadline - now) / 2;  // the rest is for settling
  round->wait(m_clock, {.deadline = half, .stop = limit.stop},
              [&](const Answers<Vote>& so_far) { return is_decided(settled_votes(so_far)); });
  round->wait(m_clock, limit, is_decided);
  return round->take();
}

// The longest ttl, to those that do not know it: the server that does may be away when they are asked next.
void QuorumStore::spread(const Answers<Vote>& votes, Millis longest, Millis within)
{
  for (std::size_t i = 0; i < size(); ++i) {
    if (votes[i] && *votes[i] && (*votes[i])->data && (*votes[i])->data->longest_ttl < longest) {
      m_members[i]->post(
          "marker", ServerWorker::Word::last,
          [longest, within, &clock = m_clock](QuorumServer& server, StopToken stop) {
            return static_cast<bool>(server.marker({.ttl = longest}, {.deadline = clock.now() + within, .stop = stop}));
          });
    }
  }
}

// What is left to do once a quorum has granted: the number, what the markers are to know, and whether the lease still has time.
Result<Attempt> QuorumStore::settle(const LockSpec& spec, const Owner& owner, const Granted& granted,
                                    const std::set<std::string>& counting, Instant asked_at, const CallLimits& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const bool any_quorum_knows = quorum == size();
  const auto count = [](const Answers<bool>& answers) { return tally(answers, [](bool raised) { return raised; }); };
  const auto request = [spec, owner, fence = granted.fence, any_quorum_knows, counting, &clock = m_clock](
                           QuorumServer& server, const CallLimits& within) -> Result<bool> {
    if (server.marker) {
      const bool counts = counting.contains(server.shown);
      const auto told = server.marker({.ttl = spec.ttl, .counts_since = counts ? server.has_data_since : 0}, within);
      if (!told) {
        return told.error();
      }
      server.told_ttl = spec.ttl;
      server.tell_again_at = clock.now() + told_for;
    }
    return any_quorum_knows ? Result(true) : server.store->raise_fence(spec, owner, fence, within);
  };
  const auto answers = consult<bool>(further(spec.name, owner), limit, request, [&](const auto& so_far) {
    return decide_proof(count(so_far), quorum) != Decision::open;
  });
  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  const auto raised = decision == Decision::unknown ? Result<bool>(no_quorum(answers, quorum))
                                                    : Result<bool>(decision == Decision::carried);
  if (!raised) {
    return raised.error();
  }
  if (!*raised || m_clock.now() >= valid_until(asked_at, spec.ttl)) {
    return Error{ErrorCode::unfit,
                 "the servers need longer to answer than the lease lasts (give a longer --ttl or --lease)"};
  }
  m_backoff->settled();
  return Attempt{granted};
}

// Everywhere but where another owner has it: also where no answer came, because the request may have been granted. Not
// waited for. Less than a quorum is no news for waiters.
void QuorumStore::take_back(const LockSpec& spec, const Owner& owner, const Answers<Attempt>& answers, bool announced,
                            Millis within)
{
  for (std::size_t i = 0; i < size(); ++i) {
    if (answers[i] && *answers[i] && !is_grant(**answers[i])) {
      continue;
    }
    post_release(i, spec, owner, announced, within);
  }
}

// Held by one on a quorum: until that one says so, or its ttl is over. Else nobody won, and chance decides who is first
// next. Of a lock that several hold at once each server may name another; it is taken for held where it is so on all.
// The place is not the first: nobody prepares for a turn that is not promised.
Attempt QuorumStore::refused(const LockSpec& spec, const Answers<Attempt>& answers, std::size_t quorum, Millis took)
{
  const auto other = most_common(answers);
  const bool silent = std::holds_alternative<StringLock>(spec.mode);
  const bool shares = !silent && !std::holds_alternative<Plain>(spec.mode);
  const bool clear = other && other->servers >= quorum;
  const bool tied = !clear && !(shares && grants(answers).yes == 0);
  if (tied) {
    m_backoff->tied(took);
  } else {
    m_backoff->settled();
  }
  const Millis ttl = ttl_of_quorum(answers, quorum);
  const Millis pause = tied     ? Millis{0}
                       : silent ? std::min(ttl, silent_pause)
                       : clear  ? ttl
                                : std::min(ttl, shared_pause);
  // Of a lock that is held as another kind, whose holder tells this caller nothing.
  const Millis by_server = other ? other->shown->again_in.value_or(pause) : pause;
  const Busy busy{.ttl = !tied && ttl < never ? std::optional{ttl} : std::nullopt,
                  .holder = other ? other->shown->holder : std::nullopt,
                  .place = 1,
                  .silent = silent,
                  .again_in = std::min(pause, by_server) + m_backoff->draw(),
                  .tied = tied};
  return busy;
}

// Counts once more wherever the owner holds it. Its number is the outer hold's, which was agreed on: a server that was
// late to grant may have given it a greater one. It is written back anew, for the late ones.
Result<ReentryResult> QuorumStore::reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const Millis within = std::chrono::ceil<Millis>(limit.deadline - m_clock.now());
  const auto count = [](const Answers<ReentryResult>& answers) {
    return tally(answers, [](const ReentryResult& entry) { return std::holds_alternative<Granted>(entry); });
  };
  const auto answers = consult<ReentryResult>(
      Subject{topic_of(spec.name, hold)}, limit,
      [spec, hold, &clock = m_clock](QuorumServer& server, const CallLimits& until) {
        return once_told(server.store->reenter(spec, hold, until), server, spec.ttl, clock, until);
      },
      [&](const auto& so_far) { return decide_proof(count(so_far), quorum) != Decision::open; });

  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  if (decision == Decision::refused) {
    for (std::size_t i = 0; i < size(); ++i) {
      post_release(i, spec, hold, false, within);
    }
    return refusal_in(answers);
  }
  const Granted granted = as_agreed(answers);
  const auto raised = quorum == size() ? Result(true) : raise_fence(spec, hold.owner, granted.fence, limit);
  if (!raised) {
    return raised.error();
  }
  return *raised ? Result<ReentryResult>(granted)
                 : Result<ReentryResult>(Error{ErrorCode::unreachable, "the lock was lost meanwhile"});
}

}  // namespace rlock
