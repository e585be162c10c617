// SPDX-License-Identifier: Apache-2.0
// How the rlock process ends (with an exit code, or by the signal that killed the job), and what became of a run.
#pragma once

#include <string>
#include <variant>

namespace rlock {

struct ExitWith {
  int code;
};
struct DieOf {
  int signal;
};
using RunEnd = std::variant<ExitWith, DieOf>;

// What --notify tells about a run.
struct RunReport {
  RunEnd end;
  std::string outcome = {};  // RLOCK_OUTCOME; empty: there was no run to tell about
  std::string message = {};  // why rlock ends with a code that is not the job's; empty: the code is the job's
};

}  // namespace rlock
