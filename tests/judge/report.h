// SPDX-License-Identifier: Apache-2.0
// All checks of a run, and their text.
#pragma once

#include "judge/checks.h"

#include <map>
#include <string>

namespace rlock::judge {

struct Verdict {
  Violations violations;
  std::string text;  // the figures and the violations
};

// `more`: violations that are not in the records (processes, keys). `process_faults`: how many of each name.
Verdict judge(const Records& records, const Violations& more, const std::map<std::string, int>& process_faults);

}  // namespace rlock::judge
