// SPDX-License-Identifier: Apache-2.0
// What the user of `rlock watch` looks at: order, filter and selection, which keys change.
#pragma once

#include "cli/output/lock_order.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace rlock::cli {

// The view of the user; keys change it.
struct View {
  SortBy sort = SortBy::key;
  bool reversed = false;
  std::string filter;         // a part of the key, the holder or the command
  bool types_filter = false;  // keys go into the filter
  std::size_t selected = 0;   // index of the selected row
  bool quits = false;
};
void press(View& view, std::string_view keys);

}  // namespace rlock::cli
