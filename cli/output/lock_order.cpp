// SPDX-License-Identifier: Apache-2.0
#include "cli/output/lock_order.h"

#include <algorithm>

namespace rlock::cli {

std::optional<Millis> age_of(const LockState& state, std::int64_t wall_ms)
{
  if (!state.held() || !state.holders.front().info) {
    return std::nullopt;
  }
  const std::int64_t since = state.holders.front().info->since_ms;
  return since > 0 && since <= wall_ms ? std::optional(Millis{wall_ms - since}) : std::nullopt;
}

bool comes_before(const LockState& one, const LockState& other, SortBy sort, std::int64_t wall_ms)
{
  switch (sort) {
    case SortBy::age: return age_of(one, wall_ms) > age_of(other, wall_ms);  // nullopt is less than any age
    case SortBy::ttl: return one.ttl.value_or(Millis::max()) < other.ttl.value_or(Millis::max());
    case SortBy::waiting: return one.waiting.size() > other.waiting.size();
    case SortBy::rate:
    case SortBy::key: break;
  }
  return one.name.text() < other.name.text();
}

void sort_locks(std::vector<LockState>& states, SortBy sort, std::int64_t wall_ms)
{
  const auto by = [&](SortBy order) {
    return [=](const LockState& one, const LockState& other) { return comes_before(one, other, order, wall_ms); };
  };
  std::sort(states.begin(), states.end(), by(SortBy::key));
  std::stable_sort(states.begin(), states.end(), by(sort));
}

}  // namespace rlock::cli
