// SPDX-License-Identifier: Apache-2.0
// The order in which locks are shown: `--sort`, and the keys of `rlock watch`.
#pragma once

#include "lock/store.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace rlock::cli {

enum class SortBy { key, age, ttl, waiting, rate };

// How long the first holder has had the lock; missing: unknown, or its host's clock is ahead.
std::optional<Millis> age_of(const LockState& state, std::int64_t wall_ms);

// By key, the oldest first, the next to expire first, or the longest queue first. SortBy::rate: the server does not say
// a rate, so the order is that of the keys.
bool comes_before(const LockState& one, const LockState& other, SortBy sort, std::int64_t wall_ms);

// Equal ones by key.
void sort_locks(std::vector<LockState>& states, SortBy sort, std::int64_t wall_ms);

}  // namespace rlock::cli
