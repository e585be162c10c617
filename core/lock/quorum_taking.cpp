// SPDX-License-Identifier: Apache-2.0
// How QuorumStore takes a lock, and counts once more for who has it.
#include "base/duration.h"
#include "lock/quorum_asking.h"
#include "lock/quorum_store.h"
#include "lock/validity.h"

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
Granted as_agreed(const Answers<Reentry>& answers)
{
  const Granted agreed = greatest(answers, [](const Granted& granted) { return granted.agreed; });
  return agreed.fence > 0 ? agreed : greatest(answers, [](const Granted&) { return true; });
}

// AlreadyDone goes before NotOurs. There is one.
Reentry refusal_in(const Answers<Reentry>& answers)
{
  std::optional<Reentry> refusal;
  for (const auto& answer : answers) {
    if (answer && *answer && !std::holds_alternative<Granted>(**answer) &&
        (!refusal || std::holds_alternative<AlreadyDone>(**answer))) {
      refusal = **answer;
    }
  }
  return *refusal;
}

// Asked once for each connection, and before the lock: who may have forgotten one is not asked for it.
Result<Done> ready(QuorumServer& server, Millis least, const Clock& clock, const Limit& limit)
{
  if (!server.started) {
    const auto uptime = server.uptime(limit);
    if (!uptime) {
      return uptime.error();
    }
    server.started = clock.now() - *uptime;
  }
  const auto age = std::chrono::floor<Millis>(clock.now() - *server.started);
  if (age >= least) {
    return Done{};
  }
  return Error{Fault::unfit, server.shown + " was started less than " + show(least) +
                                 " ago and may have forgotten locks; it counts in " + show_roughly(least - age) +
                                 " (--no-restart-guard if it keeps its data)"};
}

// What could not be taken back earlier, of attempts that were made under other owners. It would refuse the lock to this one.
Result<Done> settle_unreleased(QuorumServer& server, const Clock& clock, const Limit& limit)
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

Result<Attempt> QuorumStore::acquire(const LockSpec& spec, const Owner& owner, const Manner&, const Limit& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const Instant asked_at = m_clock.now();
  const Millis within = std::chrono::ceil<Millis>(limit.deadline - asked_at);
  const auto answers = ask_for(spec, owner, quorum, limit);
  const Decision decision = decide_grant(final_tally(grants(answers)), quorum);
  const auto* done = done_in(answers);
  if (done == nullptr && decision == Decision::carried) {
    auto settled = settle(spec, owner, greatest(answers, [](const Granted&) { return true; }), asked_at, limit);
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
    return Error{Fault::interrupted, "interrupted"};
  }
  if (decision != Decision::refused) {
    return no_quorum(answers, quorum);
  }
  return refused(spec, answers, quorum, std::chrono::ceil<Millis>(m_clock.now() - asked_at));
}

Answers<Attempt> QuorumStore::ask_for(const LockSpec& spec, const Owner& owner, std::size_t quorum,
                                      const Limit& limit)
{
  const auto least = m_policy.least_uptime ? std::optional{std::max(*m_policy.least_uptime, spec.ttl)} : std::nullopt;
  const auto request = [spec, owner, least, &clock = m_clock](QuorumServer& server,
                                                              const Limit& within) -> Result<Attempt> {
    auto fit = least && server.uptime ? ready(server, *least, clock, within) : Result<Done>(Done{});
    fit = fit ? settle_unreleased(server, clock, within) : fit;
    return fit ? server.store->acquire(spec, owner, {}, within) : Result<Attempt>(fit.error());
  };
  return consult<Attempt>(Subject{topic_of(spec.name, owner)}, limit, request, [&](const auto& so_far) {
    return done_in(so_far) != nullptr || decide_grant(grants(so_far), quorum) != Decision::open;
  });
}

// What is left to do once a quorum has granted: the number, and whether the lease still has time.
Result<Attempt> QuorumStore::settle(const LockSpec& spec, const Owner& owner, const Granted& granted, Instant asked_at,
                                    const Limit& limit)
{
  const bool any_quorum_knows = quorum_size(m_policy.rule, spec.mode, size()) == size();
  const auto raised = any_quorum_knows ? Result(true) : raise_fence(spec, owner, granted.fence, limit);
  if (!raised) {
    return raised.error();
  }
  if (!*raised || m_clock.now() >= valid_until(asked_at, spec.ttl)) {
    return Error{Fault::unfit,
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
  const bool silent = std::holds_alternative<PlainString>(spec.mode);
  const bool shares = !silent && !std::holds_alternative<Plain>(spec.mode);
  const bool clear = other && other->servers >= quorum;
  const bool tied = !clear && !(shares && grants(answers).yes == 0);
  if (tied) {
    m_backoff->tied(took);
  } else {
    m_backoff->settled();
  }
  const Millis ttl = ttl_of_quorum(answers, quorum);
  const Millis pause = tied ? Millis{0} : silent ? std::min(ttl, silent_pause) : clear ? ttl : std::min(ttl, shared_pause);
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
Result<Reentry> QuorumStore::reenter(const LockSpec& spec, const Hold& hold, const Limit& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const Millis within = std::chrono::ceil<Millis>(limit.deadline - m_clock.now());
  const auto count = [](const Answers<Reentry>& answers) {
    return tally(answers, [](const Reentry& entry) { return std::holds_alternative<Granted>(entry); });
  };
  const auto answers = consult<Reentry>(
      Subject{topic_of(spec.name, hold)}, limit,
      [spec, hold](QuorumServer& server, const Limit& until) { return server.store->reenter(spec, hold, until); },
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
  return *raised ? Result<Reentry>(granted) : Result<Reentry>(Error{Fault::unreachable, "the lock was lost meanwhile"});
}

}  // namespace rlock
