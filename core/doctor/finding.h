// SPDX-License-Identifier: Apache-2.0
// What the doctor says of one thing.
#pragma once

#include <string>
#include <string_view>

namespace rlock {

enum class Health { ok, warn, fail, unknown };

struct Finding {
  std::string_view check;  // "eviction": stable, for scripts
  Health status;
  std::string found;   // for people; safe to print
  std::string advice;  // what to do about it; empty: nothing
};

}  // namespace rlock
