// SPDX-License-Identifier: Apache-2.0
// The result of one check of `rlock doctor`. Plain values.
#pragma once

#include <string>
#include <string_view>

namespace rlock {

enum class CheckStatus { ok, warn, fail, unknown };

struct Finding {
  std::string_view check;  // the name of the check, which never changes: "eviction"
  CheckStatus status;
  std::string found;   // for people
  std::string advice;  // what to do; empty: nothing
};

}  // namespace rlock
