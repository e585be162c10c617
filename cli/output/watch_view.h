// SPDX-License-Identifier: Apache-2.0
// What the user of `rlock watch` looks at, which keys change: order, filter, selection, details, and a question.
#pragma once

#include "cli/output/lock_order.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rlock::cli {

inline constexpr Millis freeze_time = std::chrono::hours{2};

// What the user can do to the selected lock.
// cancel_freeze: of a freeze that waits for its turn.
enum class LockAction { force_unlock, freeze, cancel_freeze, thaw };

// Whether to do it. `about`: the lock as the user saw it.
struct Question {
  LockAction action;
  LockState about;  // held, unless it is to be frozen
};

// The view of the user; keys change it.
struct View {
  SortBy sort = SortBy::key;
  bool reversed = false;
  std::string filter;                                // a part of the key, the holder or the command
  bool types_filter = false;                         // keys go into the filter
  std::size_t selected = 0;                          // index of the selected row
  bool details = false;                              // the selected lock has the whole screen
  std::optional<LockAction> wanted = std::nullopt;   // its key was pressed: the caller makes it a question
  std::optional<Question> question = std::nullopt;   // waits for a key
  std::optional<Question> confirmed = std::nullopt;  // answered with y: the caller acts
  bool quits = false;
};
void press(View& view, std::string_view keys);

}  // namespace rlock::cli
