// SPDX-License-Identifier: Apache-2.0
// The controlling terminal of a job that shares the process group of rlock, so that a user can talk to the job. That is so when
// rlock was started in the foreground, or in the background with the terminal as its standard input; the shell's `fg` gives the
// terminal to both. A job that makes process groups (a shell) and is killed leaves the terminal to a group that no longer exists,
// maybe with echo off.
#pragma once

#include "base/fd.h"

#include <optional>

#include <termios.h>

namespace rlock {

class Terminal {
 public:
  Terminal();

  [[nodiscard]] bool is_shared() const
  {
    return static_cast<bool>(m_tty);
  }  // whether rlock and the job share the terminal

  void take_back() const;      // takes the terminal from a group that no longer exists
  void restore_modes() const;  // has no effect in the background

 private:
  Fd m_tty;
  std::optional<termios> m_modes;  // the modes at the start; nullopt: rlock started in the background
};

}  // namespace rlock
