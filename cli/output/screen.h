// SPDX-License-Identifier: Apache-2.0
// A terminal as a screen: keys as they are pressed, and a page of its own, which is gone when this is.
#pragma once

#include "cli/output/watch.h"

#include <string>
#include <string_view>
#include <vector>

#include <termios.h>

namespace rlock::cli {

// Between its begin and its end the terminal does not echo, and shows an alternate page without a cursor. Ctrl-C, Ctrl-\ and
// Ctrl-Z are signals as ever. The first two must be read as data (Signals): a process that dies of one would leave
// the terminal as it is.
class Screen {
 public:
  static bool is_there();  // standard input and output are a terminal

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] Size size() const;
  void show(const std::vector<std::string>& lines) const;  // in one write: nothing flickers
  [[nodiscard]] std::string keys() const;                  // that were pressed; never waits
  void suspend();                                          // as Ctrl-Z does; returns when we are continued

 private:
  void take() const;
  void give_back() const;

  termios m_before{};
};

}  // namespace rlock::cli
