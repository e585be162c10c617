// SPDX-License-Identifier: Apache-2.0
// What the user of `rlock watch` looks at, which keys change: order, filter, selection, details, a choice and a question.
// What `rlock watch` shows, independent of a terminal: the locks, the view of the user, and the lines that follow from both.
// A terminal as a screen: single keys, and a page of its own.
#pragma once

#include "base/clock.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "lock/store.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <termios.h>

namespace rlock::cli {

inline constexpr Millis freeze_time = std::chrono::hours{2};

// What the user can do to the selected lock.
// cancel_freeze: of a freeze that waits for its turn.
enum class LockAction { force_unlock, freeze, cancel_freeze, thaw };

// Whether to do it. `about`: the lock as the user saw it.
struct Question {
  LockAction action;
  LockState about;         // held, unless it is to be frozen
  std::size_t holder = 0;  // index of the holder that loses the lock
};

// Which of several holders loses the lock.
struct Choice {
  LockState about;
  std::string typed = {};  // digits; the first holder is number 1
};

// The view of the user; keys change it.
struct View {
  SortBy sort = SortBy::key;
  bool reversed = false;
  std::string filter;                                // a part of the key, the holder or the command
  bool types_filter = false;                         // keys go into the filter
  std::size_t selected = 0;                          // index of the selected row
  bool details = false;                              // the selected lock has the whole screen
  std::size_t scrolled = 0;                          // the lines of the details that are above the screen
  std::size_t page = 1;                              // rows that PgUp and PgDn move by; frame() sets it
  std::optional<LockAction> wanted = std::nullopt;   // its key was pressed: the caller makes it a question
  std::optional<Choice> choice = std::nullopt;       // waits for a number
  std::optional<Question> question = std::nullopt;   // waits for a key
  std::optional<Question> confirmed = std::nullopt;  // answered with y: the caller acts
  bool quits = false;
};
// Stops after a key that is wanted, because what follows may answer its question. Returns the keys that are left.
std::string_view press(View& view, std::string_view keys);

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
  Millis away{0};                      // for how long requests have failed
  std::string_view message = {};       // of the last action
  const LockState* details = nullptr;  // the lock that has the whole screen
  Colors colors = Colors();
  std::string_view server_option = {};  // of show_status
  std::span<const ShownPool> pools = {};
};

// Exactly `size.rows` lines, none wider than `size.columns`; limits what `view` has selected and scrolled to what there is. The
// last line has the keys or a question, the line above it the message. Colors and highlights are
// control sequences (SGR), which take no column.
std::vector<std::string> frame(const Picture& picture, View& view, Size size);

// The selected lock; nullptr: there is none.
const LockState* selected_lock(const Picture& picture, const View& view);

// During its life the terminal does not echo, and shows an alternate page without a cursor. The destructor restores the terminal.
// Ctrl-C and Ctrl-\ still send signals, which the caller must block and read (Signals): a process that dies of one does not
// restore the terminal. Ctrl-Z is a key. A change of the window size interrupts a wait for a key (SIGWINCH).
class Screen {
 public:
  static bool is_there();  // standard input and output are a terminal

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] Size size() const;
  void show(const std::vector<std::string>& lines) const;  // in one write, so that nothing flickers
  [[nodiscard]] std::string keys() const;                  // pressed since the last call; never waits
  void suspend();  // stops the process as Ctrl-Z does; returns when it is continued

 private:
  void enter() const;
  void leave() const;

  termios m_before{};
};

}  // namespace rlock::cli
