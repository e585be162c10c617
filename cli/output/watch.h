// SPDX-License-Identifier: Apache-2.0
// What `rlock watch` shows, independent of a terminal: the locks, the view of the user, and the lines that follow from both.
#pragma once

#include "base/clock.h"
#include "cli/output/colours.h"
#include "cli/output/watch_view.h"
#include "lock/store.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

// How often a lock changed hands since it was first seen. Changes between two requests count as one.
class Rates {
 public:
  void note(const std::vector<LockState>& states, Instant now);
  [[nodiscard]] double per_second(const LockName& name, Instant now) const;

 private:
  struct Seen {
    std::uint64_t fence;
    std::uint64_t changes;
    Instant since;
  };
  std::map<std::string, Seen> m_seen;
};

struct Size {
  std::size_t rows;
  std::size_t columns;
};

struct Picture {
  const std::vector<LockState>& states;
  const Rates& rates;
  std::string_view server;
  std::string_view error;  // why the last request failed, so that `states` are older; empty: it succeeded
  std::int64_t wall_ms;
  Instant now;
  std::string_view message = {};       // of the last action
  const LockState* details = nullptr;  // the lock that has the whole screen
  Colours colours = Colours();
};

// Exactly `size.rows` lines, none wider than `size.columns`; limits `view.selected` to the rows. Colours and highlights are
// control sequences (SGR), which take no column.
std::vector<std::string> frame(const Picture& picture, View& view, Size size);

// The selected lock; nullptr: there is none.
const LockState* selected_lock(const Picture& picture, const View& view);

}  // namespace rlock::cli
