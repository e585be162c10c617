// SPDX-License-Identifier: Apache-2.0
// The controlling terminal of a job that shares the process group of rlock, because a person may use the terminal to talk
// to the job: rlock was started in the foreground, or in the background with the terminal as its standard input, so that
// the shell's `fg` gives the terminal to both. A job that made groups of its own (a shell) and was killed leaves the
// terminal to a group that is gone, with echo off perhaps.
#pragma once

#include "base/fd.h"

#include <optional>

#include <termios.h>

namespace rlock {

class Terminal {
 public:
  Terminal();

  [[nodiscard]] bool is_shared() const { return static_cast<bool>(m_tty); }  // with the job

  void take_back() const;      // only from a group that is gone
  void restore_modes() const;  // only in the foreground

 private:
  Fd m_tty;
  std::optional<termios> m_modes;  // at the start, if that was in the foreground
};

}  // namespace rlock
