// SPDX-License-Identifier: Apache-2.0
// How long things may take in a schedule.
#pragma once

#include "sim/schedule.h"
#include "sim/world.h"

#include <optional>

namespace rlock::sim {

// By then all runs must be over: each has had its turn.
[[nodiscard]] Nanos last_moment(const Schedule& schedule);

// For how long no job may be alive while runs wait. `is_mixed`: two kinds of lock under one name.
[[nodiscard]] Nanos idle_limit(const Schedule& schedule, bool is_mixed);
// The same while a run waits that no fault disturbs, whatever is done to the others; nullopt: nothing is promised.
[[nodiscard]] std::optional<Nanos> undisturbed_wait_limit(const Schedule& schedule, bool is_mixed);
// From when on `idle_limit` counts.
[[nodiscard]] Nanos idle_counts_from(const Schedule& schedule);

}  // namespace rlock::sim
