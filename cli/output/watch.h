// SPDX-License-Identifier: Apache-2.0
// What `rlock watch` shows, without a terminal: what was seen, how it is looked at, and the lines that come of both.
#pragma once

#include "base/clock.h"
#include "lock/store.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

// How often a lock changed hands while it was watched, as far as looking now and then can tell: at least.
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

enum class SortBy { key, age, ttl, waiting, rate };

// How somebody looks at it; keys change it.
struct View {
  SortBy sort = SortBy::key;
  bool reversed = false;
  std::string filter;         // a part of the name, the holder or the command
  bool types_filter = false;  // what is typed goes there
  std::size_t selected = 0;   // of the rows
  bool quits = false;
};
void press(View& view, std::string_view keys);

struct Size {
  std::size_t rows;
  std::size_t columns;
};

struct Picture {
  const std::vector<LockState>& states;
  const Rates& rates;
  std::string_view server;
  std::string_view trouble;  // the last look failed; what is shown is older. Empty: it did not
  std::int64_t wall_ms;
  Instant now;
};

// Exactly `size.rows` lines, none longer than `size.columns`; keeps `view.selected` within what there is. Colours and
// highlights are control sequences (SGR), which take no column.
std::vector<std::string> frame(const Picture& picture, View& view, Size size);

}  // namespace rlock::cli
