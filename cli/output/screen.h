// SPDX-License-Identifier: Apache-2.0
// A terminal as a screen: single keys, and a page of its own.
#pragma once

#include "cli/output/watch.h"

#include <string>
#include <string_view>
#include <vector>

#include <termios.h>

namespace rlock::cli {

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
