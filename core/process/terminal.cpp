// SPDX-License-Identifier: Apache-2.0
#include "process/terminal.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace rlock {

namespace {

bool is_foreground(const Fd& tty) { return ::tcgetpgrp(tty.get()) == ::getpgrp(); }

// tcgetsid(3) fails for any terminal but the controlling one.
bool is_standard_input() { return ::tcgetsid(STDIN_FILENO) == ::getsid(0); }

}  // namespace

Terminal::Terminal() : m_tty(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY))
{
  if (!m_tty) {
    return;
  }
  if (!is_foreground(m_tty)) {
    if (!is_standard_input()) {
      m_tty.reset();
    }
    return;  // its modes are the shell's
  }
  termios modes{};
  if (::tcgetattr(m_tty.get(), &modes) == 0) {
    m_modes = modes;
  }
}

// tcsetpgrp(3) would stop an rlock in the background if TTOU were not blocked (signals.h).
void Terminal::take_back() const
{
  if (!is_shared()) {
    return;
  }
  const pid_t holder = ::tcgetpgrp(m_tty.get());
  if (holder > 0 && ::kill(-holder, 0) != 0 && errno == ESRCH) {
    ::tcsetpgrp(m_tty.get(), ::getpgrp());
  }
}

void Terminal::restore_modes() const
{
  if (m_modes && is_foreground(m_tty)) {
    ::tcsetattr(m_tty.get(), TCSANOW, &*m_modes);
  }
}

}  // namespace rlock
