// SPDX-License-Identifier: Apache-2.0
// The controlling terminal when the job shares the process group of rlock, so that a user can talk to the job: rlock
// was started in the foreground, or in the background with the terminal as its standard input, and the shell's `fg`
// gives the terminal to both. A job that made groups of its own (a shell) and was killed leaves the terminal to a group
// that no longer exists, maybe with echo off.
#pragma once

#include "base/fd.h"

#include <optional>

#include <termios.h>

namespace rlock {

class Terminal {
 public:
  Terminal();

  [[nodiscard]] bool is_shared() const { return static_cast<bool>(m_tty); }  // with the job

  void take_back() const;      // only from a group that no longer exists
  void restore_modes() const;  // only in the foreground

 private:
  Fd m_tty;
  std::optional<termios> m_modes;  // at the start, if that was in the foreground
};

}  // namespace rlock
