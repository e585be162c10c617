// SPDX-License-Identifier: Apache-2.0
// When an adapter deletes what is of no use any more.
#pragma once

#include <cstdint>
#include "base/clock.h"
#include "engine/record_backend.h"

namespace rlock::record {

inline constexpr std::uint64_t commits_per_cleaning = 128;

// After a commit. One that grants or renews never cleans: its caller waits for it, and its lease has begun.
inline bool must_clean(Rng& rng, const Change& change)
{
  return change.face.holder.empty() && below(rng, commits_per_cleaning) == 0;
}

}  // namespace rlock::record
