// SPDX-License-Identifier: Apache-2.0
#include "lock/quorum_store.h"

#include "base/duration.h"
#include "lock/quorum_asking.h"
#include "lock/quorum_listener.h"
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

Granted greatest(const Answers<Attempt>& answers)
{
  Granted all{.fence = 0, .count = 1};
  for (const auto& answer : answers) {
    if (answer && *answer && is_grant(**answer)) {
      const auto& granted = std::get<Granted>(**answer);
      all.fence = std::max(all.fence, granted.fence);
      all.count = std::max(all.count, granted.count);
    }
  }
  return all;
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

QuorumStore::QuorumStore(std::vector<QuorumServer> servers, QuorumPolicy policy, const Clock& clock,
                         std::unique_ptr<Rng> rng)
    : m_policy(policy), m_clock(clock), m_rng(std::move(rng)), m_backoff(std::make_shared<Backoff>(*m_rng))
{
  for (QuorumServer& server : servers) {
    m_members.push_back(std::make_unique<QuorumMember>(std::move(server)));
  }
}

QuorumStore::~QuorumStore() { rest(); }

void QuorumStore::rest()
{
  constexpr Millis look_every{1};
  const Instant over = m_clock.now() + lame_grace;
  for (const auto& member : m_members) {
    member->hurry();
  }
  const auto is_idle = [](const auto& member) { return member->is_idle(); };
  while (m_clock.now() < over && !std::all_of(m_members.begin(), m_members.end(), is_idle)) {
    m_clock.sleep_until(m_clock.now() + look_every, Stop::never());
  }
  for (const auto& member : m_members) {
    member->rest();
  }
}

// A tie is tried again only for as long as the lease that comes of it is not much older than its grant.
Result<Attempt> QuorumStore::acquire(const LockSpec& spec, const Owner& owner, const Manner&, const Limit& limit)
{
  const Instant give_up = std::min(limit.deadline, m_clock.now() + spec.ttl / 4);
  for (;;) {
    Try tried = try_once(spec, owner, limit);
    const Instant again = tried.tied ? m_clock.now() + *std::get<Busy>(*tried.attempt).again_in : far_future;
    if (again >= give_up) {
      return tried.attempt;
    }
    if (m_clock.sleep_until(again, limit.stop) == Wake::stopped) {
      return Error{Fault::interrupted, "interrupted"};
    }
  }
}

QuorumStore::Try QuorumStore::try_once(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const Instant asked_at = m_clock.now();
  const Millis within = std::chrono::ceil<Millis>(limit.deadline - asked_at);
  const auto answers = ask_for(spec, owner, quorum, limit);
  const Decision decision = decide_grant(final_tally(grants(answers)), quorum);
  const auto* done = done_in(answers);
  if (done == nullptr && decision == Decision::carried) {
    auto settled = settle(spec, owner, greatest(answers), asked_at, limit);
    if (!settled) {
      take_back(spec, owner, answers, true, within);
    }
    return {std::move(settled)};
  }
  take_back(spec, owner, answers, decision == Decision::carried, within);
  if (done != nullptr) {
    return {Attempt{*done}};
  }
  if (limit.stop.requested()) {
    return {Error{Fault::interrupted, "interrupted"}};
  }
  if (decision != Decision::refused) {
    return {no_quorum(answers, quorum)};
  }
  return refused(spec, answers, quorum, std::chrono::ceil<Millis>(m_clock.now() - asked_at));
}

Answers<Attempt> QuorumStore::ask_for(const LockSpec& spec, const Owner& owner, std::size_t quorum,
                                      const Limit& limit)
{
  const auto least = m_policy.least_uptime ? std::optional{std::max(*m_policy.least_uptime, spec.ttl)} : std::nullopt;
  const auto request = [spec, owner, least, &clock = m_clock](QuorumServer& server,
                                                              const Limit& within) -> Result<Attempt> {
    const auto fit = least && server.uptime ? ready(server, *least, clock, within) : Result<Done>(Done{});
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

Result<bool> QuorumStore::raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                                      const Limit& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const auto count = [](const Answers<bool>& answers) { return tally(answers, [](bool raised) { return raised; }); };
  const auto answers = consult<bool>(
      further(spec.name, owner), limit,
      [spec, owner, fence](QuorumServer& server, const Limit& within) {
        return server.store->raise_fence(spec, owner, fence, within);
      },
      [&](const auto& so_far) { return decide_proof(count(so_far), quorum) != Decision::open; });
  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  return decision == Decision::unknown ? Result<bool>(no_quorum(answers, quorum))
                                       : Result<bool>(decision == Decision::carried);
}

// Everywhere but where somebody else has it: also where no answer came, for that is no no. Nobody waits for it: the
// next attempt, or who gives up, has the last word. Less than a quorum is no news for those who wait.
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

void QuorumStore::post_release(std::size_t member, const LockSpec& spec, const Hold& hold, bool announced, Millis within)
{
  const auto task = [spec, hold, announced, within, &clock = m_clock](QuorumServer& server, Stop stop) {
    const Parting parting{.keep = Millis{0}, .succeeded = false, .announced = announced};
    const Limit limit{.deadline = clock.now() + within, .stop = stop};
    return static_cast<bool>(server.store->release(spec, hold, parting, limit));
  };
  m_members[member]->post(topic_of(spec.name, hold), QuorumMember::Word::last, task);
}

// Held by one on a quorum: until that one says so, or its ttl is over. Else nobody won, and chance decides who is first
// next. Of a lock that several hold at once each server may name another; it is taken for held where it is so on all.
// The place is not the first: nobody prepares for a turn that is not promised.
QuorumStore::Try QuorumStore::refused(const LockSpec& spec, const Answers<Attempt>& answers, std::size_t quorum,
                                      Millis took)
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
  Busy busy{.ttl = !tied && ttl < never ? std::optional{ttl} : std::nullopt,
            .holder = other ? other->shown->holder : std::nullopt,
            .place = 1,
            .silent = silent};
  busy.again_in = pause + m_backoff->draw();
  return {Attempt{std::move(busy)}, tied};
}

// Counts once more wherever the owner holds it. The number is written back anew: a server that was late to grant the
// outer hold may have given it a greater one.
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
  Granted granted{.fence = 0, .count = 1};
  std::optional<Reentry> other;  // AlreadyDone goes before NotOurs
  for (const auto& answer : answers) {
    if (!answer || !*answer) {
      continue;
    }
    if (const auto* one = std::get_if<Granted>(&**answer)) {
      granted = {.fence = std::max(granted.fence, one->fence), .count = std::max(granted.count, one->count)};
    } else if (!other || std::holds_alternative<AlreadyDone>(**answer)) {
      other = **answer;
    }
  }
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  if (decision == Decision::refused) {
    for (std::size_t i = 0; i < size(); ++i) {
      post_release(i, spec, hold, false, within);
    }
    return *other;
  }
  const auto raised = quorum == size() ? Result(true) : raise_fence(spec, hold.owner, granted.fence, limit);
  if (!raised) {
    return raised.error();
  }
  return *raised ? Result<Reentry>(granted) : Result<Reentry>(Error{Fault::unreachable, "the lock was lost meanwhile"});
}

Result<Renewal> QuorumStore::renew(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const auto count = [](const Answers<Renewal>& answers) {
    return tally(answers, [](const Renewal& renewal) { return std::holds_alternative<Kept>(renewal); });
  };
  const auto answers = consult<Renewal>(
      further(spec.name, owner), limit,
      [spec, owner](QuorumServer& server, const Limit& within) { return server.store->renew(spec, owner, within); },
      [&](const auto& so_far) { return decide_proof(count(so_far), quorum) != Decision::open; });

  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  Kept kept;
  NotOurs lost;
  for (const auto& answer : answers) {
    if (!answer || !*answer) {
      continue;
    }
    if (const auto* ours = std::get_if<Kept>(&**answer)) {
      kept.forced = ours->forced ? ours->forced : kept.forced;
    } else {
      const auto& gone = std::get<NotOurs>(**answer);
      lost.what = lost.what.empty() ? gone.what : lost.what;
      lost.forced = gone.forced ? gone.forced : lost.forced;
    }
  }
  return decision == Decision::carried ? Renewal{kept} : Renewal{lost};
}

// Who goes must not leave a request behind that is still under way to a server that hangs: it is cut off, so that the word
// of the release can be sent.
Result<Release> QuorumStore::release(const LockSpec& spec, const Hold& hold, const Parting& parting,
                                     const Limit& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const auto count = [](const Answers<Release>& answers) {
    return tally(answers, [](const Release& release) { return !std::holds_alternative<NotOurs>(release); });
  };
  const auto request = [spec, hold, parting](QuorumServer& server, const Limit& within) {
    return server.store->release(spec, hold, parting, within);
  };
  const Subject subject{topic_of(spec.name, hold), QuorumMember::Word::urgent};
  const auto answers = consult_all<Release>(subject, limit, request, [&](const auto& so_far) {
    return decide_proof(count(so_far), quorum) != Decision::open;
  });

  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  // Of those that say the same, StillHeld goes first: an outer hold is left wherever one says so.
  std::optional<Release> said;
  for (const auto& answer : answers) {
    if (!answer || !*answer || std::holds_alternative<NotOurs>(**answer) == (decision == Decision::carried)) {
      continue;
    }
    if (!said || std::holds_alternative<StillHeld>(**answer)) {
      said = **answer;
    }
  }
  return *said;
}

// A quorum is enough: who lets go of the lock says so on one of them at least.
Result<std::unique_ptr<Listener>> QuorumStore::listen(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  using Ear = std::unique_ptr<Listener>;
  const std::size_t quorum = majority();
  const auto count = [](const Answers<Ear>& answers) { return tally(answers, [](const Ear&) { return true; }); };
  auto answers = consult<Ear>(
      Subject{"listen " + topic_of(spec.name, owner)}, limit,
      [spec, owner](QuorumServer& server, const Limit& within) -> Result<Ear> {
        auto ear = server.store->listen(spec, owner, within);
        const auto hears = ear ? (*ear)->hear_releases(within) : Result<Done>(ear.error());
        return hears ? std::move(ear) : Result<Ear>(hears.error());
      },
      [&](const auto& so_far) { return decide_proof(count(so_far), quorum) != Decision::open; });

  if (decide_proof(final_tally(count(answers)), quorum) != Decision::carried) {
    return no_quorum(answers, quorum);
  }
  std::vector<Ear> ears;
  for (auto& answer : answers) {
    if (answer && *answer) {
      ears.push_back(std::move(**answer));
    }
  }
  return Ear(std::make_unique<QuorumListener>(std::move(ears), quorum, m_backoff));
}

}  // namespace rlock
