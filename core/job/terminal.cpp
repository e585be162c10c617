// SPDX-License-Identifier: Apache-2.0
#include "job/terminal.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace rlock {

Terminal::Terminal() : m_tty(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY))
{
  if (!m_tty) {
    return;
  }
  if (::tcgetpgrp(m_tty.get()) != ::getpgrp()) {
    m_tty.reset();
    return;
  }
  termios modes{};
  if (::tcgetattr(m_tty.get(), &modes) == 0) {
    m_modes = modes;
  }
}

// From the background this would stop us, were TTOU not blocked for good (signals.h).
void Terminal::take_back() const
{
  if (!is_ours()) {
    return;
  }
  const pid_t holder = ::tcgetpgrp(m_tty.get());
  if (holder > 0 && ::kill(-holder, 0) != 0 && errno == ESRCH) {
    ::tcsetpgrp(m_tty.get(), ::getpgrp());
  }
}

void Terminal::restore_modes() const
{
  if (m_modes && ::tcgetpgrp(m_tty.get()) == ::getpgrp()) {
    ::tcsetattr(m_tty.get(), TCSANOW, &*m_modes);
  }
}

}  // namespace rlock
