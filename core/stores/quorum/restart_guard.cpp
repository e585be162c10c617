// SPDX-License-Identifier: Apache-2.0
#include "stores/quorum/restart_guard.h"

#include <algorithm>
#include <vector>
#include "base/duration.h"
#include "lock/lease_budget.h"

namespace rlock {
namespace {

// A grant that may not count.
bool is_unsure_grant(const Vote& vote)
{
  return std::holds_alternative<Granted>(vote.attempt) && vote.data && !vote.data->sure;
}

bool is_too_young(const Vote& vote, Millis needed_age) { return is_unsure_grant(vote) && vote.data->age < needed_age; }

Error too_young(const std::string& shown, Millis age, Millis needed)
{
  return {ErrorCode::server_not_ready, shown + " has had its data for less than " + show_roughly(needed) +
                                           " and may have forgotten locks; it counts in " + show_roughly(needed - age) +
                                           " (--no-restart-guard if it keeps its data)"};
}

Result<Attempt> counted(const Vote& vote, Millis needed_age)
{
  return is_too_young(vote, needed_age) ? Result<Attempt>(too_young(vote.shown, vote.data->age, needed_age))
                                        : vote.attempt;
}

}  // namespace

Millis longest_ttl(const Answers<Vote>& votes, Millis ttl)
{
  Millis longest = ttl;
  for (const Vote* const vote : values_in(votes)) {
    if (vote->data) {
      longest = std::max(longest, vote->data->longest_ttl);
    }
  }
  return longest;
}

Millis needed_age(const Answers<Vote>& votes, Millis ttl, std::optional<Millis> guard)
{
  const Millis longest = guard.value_or(longest_ttl(votes, ttl));
  return longest + drift_allowed(longest);
}

Answers<Vote> settled_votes(const Answers<Vote>& so_far)
{
  Answers<Vote> votes = so_far;
  for (auto& vote : votes) {
    if (vote && *vote && is_unsure_grant(**vote) && !all_replied(so_far)) {
      vote.reset();
    }
  }
  return votes;
}

Answers<Attempt> counted_attempts(const Answers<Vote>& votes, Millis needed_age)
{
  Answers<Attempt> attempts(votes.size());
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i]) {
      attempts[i].emplace(*votes[i] ? counted(**votes[i], needed_age) : Result<Attempt>(votes[i]->error()));
    }
  }
  return attempts;
}

std::set<std::string> counting_servers(const Answers<Vote>& votes, Millis needed_age)
{
  std::set<std::string> all;
  for (const auto& vote : votes) {
    const bool grants = vote && *vote && std::holds_alternative<Granted>((*vote)->attempt);
    if (grants && !is_too_young(**vote, needed_age)) {
      all.insert((*vote)->shown);
    }
  }
  return all;
}

std::optional<Millis> old_enough_in(const Answers<Vote>& votes, Millis needed_age, std::size_t more)
{
  std::vector<Millis> waits;
  for (const auto& vote : votes) {
    if (vote && *vote && is_too_young(**vote, needed_age)) {
      waits.push_back(needed_age - (*vote)->data->age);
    }
  }
  std::sort(waits.begin(), waits.end());
  return more > 0 && more <= waits.size() ? std::optional{waits[more - 1]} : std::nullopt;
}

}  // namespace rlock
