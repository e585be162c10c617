// SPDX-License-Identifier: Apache-2.0
// The terminal that we were started in the foreground of, as it was then. A job that made groups of
// its own (a shell) and was killed leaves it in the hands of the dead, with echo off perhaps.
#pragma once

#include "base/fd.h"

#include <optional>

#include <termios.h>

namespace rlock {

class Terminal {
 public:
  Terminal();  // the controlling terminal, if there is one and our group has it

  [[nodiscard]] bool is_ours() const { return static_cast<bool>(m_tty); }

  void take_back() const;      // only from a group that is gone: whoever lives keeps it
  void restore_modes() const;  // only when it is ours again

 private:
  Fd m_tty;
  std::optional<termios> m_modes;
};

}  // namespace rlock
