// SPDX-License-Identifier: Apache-2.0
#include "support/terminal.h"

#include <array>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace rlock::test {

TestTerminal::TestTerminal(unsigned short rows, unsigned short columns)
    : m_master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK))
{
  REQUIRE(::grantpt(m_master.get()) == 0);
  REQUIRE(::unlockpt(m_master.get()) == 0);
  std::array<char, 64> name{};
  REQUIRE(::ptsname_r(m_master.get(), name.data(), name.size()) == 0);
  m_slave = Fd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(m_slave.get() >= 0);
  resize(rows, columns);
}

void TestTerminal::resize(unsigned short rows, unsigned short columns)
{
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::ioctl(m_master.get(), TIOCSWINSZ, &size) == 0);
}

void TestTerminal::type(std::string_view keys) const
{
  REQUIRE(::write(m_master.get(), keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

const std::string& TestTerminal::seen()
{
  std::array<char, 4096> some{};
  for (ssize_t n = 0; (n = ::read(m_master.get(), some.data(), some.size())) > 0;) {
    m_seen.append(some.data(), static_cast<std::size_t>(n));
  }
  return m_seen;
}

}  // namespace rlock::test
