// SPDX-License-Identifier: Apache-2.0
// Makes a schedule that breaks a rule shorter: leaves out faults, clients and runs for as long as a rule is still broken.
#pragma once

#include "sim/schedule.h"

#include <functional>

namespace rlock::sim {

Schedule shrink(Schedule schedule, const std::function<bool(const Schedule&)>& breaks_a_rule);

}  // namespace rlock::sim
