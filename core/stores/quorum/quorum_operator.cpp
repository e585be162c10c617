// SPDX-License-Identifier: Apache-2.0
// The operator's half of QuorumStore: inspect, list, forget, force-unlock.
#include "stores/quorum/quorum_operator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include "stores/quorum/quorum_store.h"

namespace rlock {
namespace {

template <typename T>
std::size_t answered(const Answers<T>& answers)
{
  return values_in(answers).size();
}

// The request `ask(server, limits)` of a call that makes any number of requests.
template <typename Ask>
auto with_timeout(const Clock& clock, Millis timeout, Ask ask)
{
  return [&clock, timeout, ask = std::move(ask)](QuorumServer& server, const CallLimits& within) {
    return ask(server, PerAnswer{.clock = clock, .timeout = timeout, .whole = within});
  };
}

// One holder as several servers see it.
struct Seen {
  Holder holder;
  std::vector<Millis> ttls;
  std::size_t refusing = 0;  // servers that have revoked the hold
};

constexpr Millis no_expiry = Millis::max();

// The lesser of the known times; nullopt: both are unknown.
std::optional<Millis> lesser(std::optional<Millis> one, std::optional<Millis> other)
{
  return !one || (other && *other < *one) ? other : one;
}

std::map<std::string, Seen> holders_in(const Answers<LockState>& answers)
{
  std::map<std::string, Seen> all;
  for (const LockState* const state : values_in(answers)) {
    for (const Holder& holder : state->holders) {
      Seen& seen = all.try_emplace(holder.owner.text(), Seen{.holder = holder, .ttls = {}}).first->second;
      seen.holder.count = std::max(seen.holder.count, holder.count);
      seen.holder.info = seen.holder.info ? seen.holder.info : holder.info;
      seen.holder.age = lesser(seen.holder.age, holder.age);
      seen.ttls.push_back(state->ttl.value_or(no_expiry));
      seen.refusing += holder.revoked ? 1 : 0;
    }
  }
  return all;
}

// The lock's number. The number that a quorum agreed on, if one holder is alone, goes before what a server has counted.
std::uint64_t fence_in(const Answers<LockState>& answers, const std::vector<Holder>& holders)
{
  std::uint64_t counted = 0;
  std::uint64_t agreed = 0;
  for (const LockState* const state : values_in(answers)) {
    const bool is_of_holder =
        holders.size() == 1 && state->holders.size() == 1 && state->holders[0].owner == holders[0].owner;
    counted = std::max(counted, state->fence);
    agreed = state->agreed && is_of_holder ? std::max(agreed, state->fence) : agreed;
  }
  return agreed > 0 ? agreed : counted;
}

// How long a quorum of servers keeps the holder.
Millis ttl_of(Seen& seen, std::size_t quorum)
{
  std::sort(seen.ttls.rbegin(), seen.ttls.rend());
  return seen.ttls[std::min(quorum, seen.ttls.size()) - 1];
}

// The answers about a holder that may hold the lock on a quorum. Its hold lasts until fewer servers have it.
ForceHeld held_in(const Answers<ForceAnswer>& answers, std::size_t quorum)
{
  std::optional<ForceHeld> all;
  std::vector<Millis> lasting;
  for (const ForceHeld* const held : alternatives_in<ForceHeld>(answers)) {
    lasting.push_back(held->lasts.value_or(no_expiry));
    if (!all) {
      all = *held;
      continue;
    }
    all->holder.info = all->holder.info ? all->holder.info : held->holder.info;
    all->listening = std::max(all->listening, held->listening);
    all->silent_for = lesser(all->silent_for, held->silent_for);
    all->is_rlock = all->is_rlock || held->is_rlock;
  }
  std::sort(lasting.rbegin(), lasting.rend());
  const Millis lasts = lasting[std::min(quorum, lasting.size()) - 1];
  all->lasts = lasts == no_expiry ? std::nullopt : std::optional{lasts};
  return *all;
}

// Broken if one server has broken it; else the holder that has the lock now.
ForceAnswer not_held_in(const Answers<ForceAnswer>& answers)
{
  ForceAnswer all = ForceFree{};
  for (const ForceAnswer* const answer : values_in(answers)) {
    const bool tells_more = !std::holds_alternative<ForceBroken>(all) && !std::holds_alternative<ForceFree>(*answer) &&
                            !std::holds_alternative<ForceHeld>(*answer);
    if (tells_more) {
      all = *answer;
    }
  }
  return all;
}

}  // namespace

// A holder counts when a quorum of servers has it, or may have it because some are silent. The other holders are
// partial. A holder is revoked when so many servers refuse its renewals that the others are no quorum; a server that does not
// have the hold refuses them as well, and a silent one may not.
LockState QuorumStore::merged(const LockName& name, const Answers<LockState>& answers) const
{
  const std::size_t answering = answered(answers);
  LockState all{.name = name, .kind = Plain{}, .ttl = std::nullopt, .fence = 0, .holders = {}, .waiting = {}};
  for (const LockState* const state : values_in(answers)) {
    all.kind = state->held() || all.holders.empty() ? state->kind : all.kind;
    if (state->held()) {
      all.holders = state->holders;
    }
    all.once = !all.once || (state->once && state->once->at_ms > all.once->at_ms) ? state->once : all.once;
    all.proven = all.proven && state->proven;
  }
  all.holders.clear();
  const std::size_t quorum = quorum_size(m_policy.rule, all.kind, size());
  Millis ttl{0};
  for (auto& [owner, seen] : holders_in(answers)) {
    const std::size_t silent = size() - answering;
    seen.holder.revoked = seen.refusing > 0 && seen.ttls.size() - seen.refusing + silent < quorum;
    if (seen.ttls.size() + silent < quorum) {
      all.partial.push_back(seen.holder);
      continue;
    }
    ttl = std::max(ttl, ttl_of(seen, quorum));
    all.holders.push_back(std::move(seen.holder));
  }
  all.count = all.holders.size();
  all.fence = fence_in(answers, all.holders);
  all.ttl = ttl == no_expiry ? std::nullopt : std::optional{ttl};
  return all;
}

// The Error where fewer than `needed` servers answer.
template <typename T, typename Request>
Result<Answers<T>> QuorumStore::ask_at_least(std::size_t needed, const Subject& subject, const CallLimits& limit,
                                             Request request)
{
  auto answers = ask_all<T>(subject, limit, std::move(request),
                            [needed](const Answers<T>& so_far) { return answered(so_far) >= needed; });
  return answered(answers) < needed ? Result<Answers<T>>(no_quorum(answers, needed)) : std::move(answers);
}

Result<LockState> QuorumStore::inspect(const LockName& name, const CallLimits& limit)
{
  const auto ask = [name](QuorumServer& server, const CallLimits& within) {
    return server.store->inspect(name, within);
  };
  ASSIGN_OR_RETURN(const auto answers,
                   ask_at_least<LockState>(majority(), Subject{"inspect " + name.text()}, limit, ask));
  return merged(name, answers);
}

namespace {

Result<std::vector<LockState>> only_held(Result<std::vector<LockState>> locks)
{
  if (locks) {
    std::erase_if(*locks, [](const LockState& lock) { return !lock.held(); });
  }
  return locks;
}

}  // namespace

// A lock that one server lists is free on the servers that answered and do not list it.
template <typename Request>
Result<QuorumStore::Locks> QuorumStore::merged_lists(const PerAnswer& limits, Request request)
{
  const auto ask = [request](QuorumServer& server, const PerAnswer& each) { return request(*server.store, each); };
  ASSIGN_OR_RETURN(const auto answers, ask_at_least<Locks>(majority(), Subject{"list"}, limits.whole,
                                                           with_timeout(m_clock, limits.timeout, ask)));

  std::map<LockName, Answers<LockState>> by_name;
  for (std::size_t i = 0; i < size(); ++i) {
    for (const LockState& lock : answers[i] && *answers[i] ? **answers[i] : Locks{}) {
      by_name.try_emplace(lock.name, size()).first->second[i].emplace(lock);
    }
  }
  Locks locks;
  for (auto& [name, states] : by_name) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!states[i] && answers[i] && *answers[i]) {
        states[i].emplace(
            LockState{.name = name, .kind = Plain{}, .ttl = Millis{0}, .fence = 0, .holders = {}, .waiting = {}});
      }
    }
    locks.push_back(merged(name, states));
  }
  return locks;
}

Result<std::vector<LockState>> QuorumStore::list(std::string_view pattern, const PerAnswer& limits)
{
  return only_held(merged_lists(limits, [glob = std::string(pattern)](LockStore& store, const PerAnswer& within) {
    return store.list(glob, within);
  }));
}

Result<std::vector<LockState>> QuorumStore::list_held(std::span<const LockName> names, const PerAnswer& limits)
{
  return only_held(
      merged_lists(limits, [all = std::vector(names.begin(), names.end())](LockStore& store, const PerAnswer& within) {
        return store.list_held(all, within);
      }));
}

Result<std::vector<LockState>> QuorumStore::states_of(std::span<const LockName> names, const PerAnswer& limits)
{
  return merged_lists(limits, [all = std::vector(names.begin(), names.end())](
                                  LockStore& store, const PerAnswer& within) { return store.states_of(all, within); });
}

// Forgets the success on all servers, because a success that one server remembers counts.
Result<bool> QuorumStore::forget_success(const LockName& name, const CallLimits& limit)
{
  const auto ask = [name](QuorumServer& server, const CallLimits& within) {
    return server.store->forget_success(name, within);
  };
  ASSIGN_OR_RETURN(const auto answers, ask_at_least<bool>(size(), Subject{"forget " + name.text()}, limit, ask));
  return std::any_of(answers.begin(), answers.end(), [](const auto& answer) { return **answer; });
}

// A step is done when the servers that did not answer are too few for the owner to hold the lock on them, or when
// enough servers say that the owner holds it.
Result<ForceAnswer> QuorumStore::force(ForceStep step, const ForceCall& call, const CallLimits& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, call.kind, size());
  const std::size_t needed = std::max(majority(), size() - quorum + 1);
  const auto ask = [step, call](QuorumServer& server, const CallLimits& within) {
    return server.store->force(step, call, within);
  };
  ASSIGN_OR_RETURN(const auto answers,
                   ask_at_least<ForceAnswer>(needed, Subject{"force " + call.name.text()}, limit, ask));
  const Tally tallied =
      final_tally(tally(answers, [](const ForceAnswer& answer) { return std::holds_alternative<ForceHeld>(answer); }));
  if (tallied.yes > 0 && tallied.yes + tallied.failed >= quorum) {
    return ForceAnswer{held_in(answers, quorum)};
  }
  return not_held_in(answers);
}

Result<std::vector<LockHistory>> QuorumStore::past_runs(std::span<const LockName> names, LogPart part,
                                                        const PerAnswer& limits)
{
  const auto ask = [all = std::vector(names.begin(), names.end()), part](QuorumServer& server, const PerAnswer& each) {
    return server.store->past_runs(all, part, each);
  };
  ASSIGN_OR_RETURN(const auto answers,
                   ask_at_least<std::vector<LockHistory>>(majority(), Subject{"history"}, limits.whole,
                                                          with_timeout(m_clock, limits.timeout, ask)));
  std::vector<LockHistory> all;
  for (std::size_t lock = 0; lock < names.size(); ++lock) {
    std::vector<const std::vector<PastRun>*> logs;
    LockHistory merged;
    for (const auto* const histories : values_in(answers)) {
      const LockHistory& history = (*histories)[lock];
      logs.push_back(&history.runs);
      merged.complete_since_ms = std::max(merged.complete_since_ms, history.complete_since_ms);
    }
    merged.runs = merged_runs(logs, majority(), size() - answered(answers));
    all.push_back(std::move(merged));
  }
  return all;
}

Result<Done> QuorumStore::keep_runs(const LockName& name, Millis history, const PerAnswer& limits)
{
  const auto [answers, decision] =
      prove<Done>(Subject{"keep runs " + name.text()}, majority(), limits.next(),
                  with_timeout(m_clock, limits.timeout,
                               [name, history](QuorumServer& server, const PerAnswer& each) {
                                 return server.store->keep_runs(name, history, each);
                               }),
                  [](const Done&) { return true; });
  return decision == Decision::carried ? Result(Done{}) : Result<Done>(no_quorum(answers, majority()));
}

Result<Forgotten> QuorumStore::forget_runs(const LockName& name, const CallLimits& limit)
{
  const auto state = inspect(name, limit);
  if (!state || state->held()) {  // a minority of the servers may not have the grant
    return state ? Result(Forgotten{}) : state.error();
  }
  const auto ask = [name](QuorumServer& server, const CallLimits& within) {
    return server.store->forget_runs(name, within);
  };
  ASSIGN_OR_RETURN(const auto answers,
                   ask_at_least<Forgotten>(size(), Subject{"forget runs " + name.text()}, limit, ask));
  return Forgotten{.runs = std::ranges::any_of(answers, [](const auto& answer) { return (**answer).runs; }),
                   .permits = std::ranges::any_of(answers, [](const auto& answer) { return (**answer).permits; })};
}

Result<std::vector<LockName>> QuorumStore::find_known(std::string_view pattern, const PerAnswer& limits)
{
  using Names = std::vector<LockName>;
  const auto ask = [glob = std::string(pattern)](QuorumServer& server, const PerAnswer& each) {
    return server.store->find_known(glob, each);
  };
  ASSIGN_OR_RETURN(const auto answers, ask_at_least<Names>(majority(), Subject{"find known"}, limits.whole,
                                                           with_timeout(m_clock, limits.timeout, ask)));
  std::set<LockName> known;
  for (const Names* const names : values_in(answers)) {
    known.insert(names->begin(), names->end());
  }
  return Names(known.begin(), known.end());
}

Result<Done> QuorumStore::note_skipped(const LockSpec& spec, const Owner& owner, const SkippedRun& run,
                                       const CallLimits& limit)
{
  const auto [answers, decision] = prove<Done>(
      Subject{"skip " + topic_of(spec.name, owner)}, majority(), limit,
      [spec, owner, run](QuorumServer& server, const CallLimits& within) {
        return server.store->note_skipped(spec, owner, run, within);
      },
      [](const Done&) { return true; });
  return decision == Decision::carried ? Result(Done{}) : Result<Done>(no_quorum(answers, majority()));
}

namespace {

// How much a server knows of the end of a run. One that was away then knows only that the lease was over, or that its waiter did
// not confirm there.
int knowledge_of_end(const PastRun& run)
{
  const bool is_inferred = !run.exit_code && (run.outcome == Outcome::lost || run.outcome == Outcome::timed_out);
  const bool is_told = run.outcome && !is_inferred;
  return (run.exit_code ? 8 : 0) + (is_told ? 4 : 0) + (run.duration ? 2 : 0) + (run.outcome ? 0 : 1);
}

std::optional<std::int64_t> end_ms(const PastRun& run)
{
  return run.duration ? std::optional(run.start_ms + run.duration->count()) : std::nullopt;
}

// Merges what two servers say about one run: the earliest start, and the end that the better informed server tells.
void merge(PastRun& run, const PastRun& other)
{
  auto end = end_ms(run);
  if (knowledge_of_end(other) > knowledge_of_end(run)) {
    run.exit_code = other.exit_code;
    run.outcome = other.outcome;
    end = end_ms(other);
  }
  run.start_ms = std::min(run.start_ms, other.start_ms);
  run.duration = end ? std::optional(Millis{*end - run.start_ms}) : std::nullopt;
  run.times = std::max(run.times, other.times);
  run.waited = std::max(run.waited, other.waited);
}

// The number that the run was told. Each grant has a number of its own, in the order of the grants, and the run counts with the
// quorum-th of them. A release names it, so then a quorum of the logs has the same number.
std::uint64_t agreed_fence(std::vector<std::uint64_t> fences, std::size_t quorum)
{
  const auto place = fences.begin() + static_cast<std::ptrdiff_t>(std::min(quorum, fences.size()) - 1);
  std::nth_element(fences.begin(), place, fences.end());
  return *place;
}

}  // namespace

std::vector<PastRun> merged_runs(const std::vector<const std::vector<PastRun>*>& logs, std::size_t quorum,
                                 std::size_t silent)
{
  struct Logged {
    PastRun run;
    std::vector<std::uint64_t> fences;  // one from each server that has logged it
  };
  std::map<std::string, Logged> by_owner;
  for (const auto* const log : logs) {
    for (const PastRun& run : *log) {
      Logged& logged = by_owner.try_emplace(run.owner.text(), Logged{run, {}}).first->second;
      merge(logged.run, run);
      logged.fences.push_back(run.fence);
    }
  }
  std::vector<PastRun> runs;
  for (auto& [owner, logged] : by_owner) {
    if (logged.fences.size() + silent >= quorum) {
      logged.run.fence = agreed_fence(std::move(logged.fences), quorum);
      runs.push_back(std::move(logged.run));
    }
  }
  sort_newest_first(runs);
  return runs;
}

}  // namespace rlock
