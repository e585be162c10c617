// SPDX-License-Identifier: Apache-2.0
// How the rlock process ends: with an exit code, or by a signal (the one that killed the job).
#pragma once

#include <variant>

namespace rlock {

struct ExitWith {
  int code;
};
struct DieOf {
  int signal;
};
using RunEnd = std::variant<ExitWith, DieOf>;

}  // namespace rlock
