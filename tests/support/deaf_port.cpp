// SPDX-License-Identifier: Apache-2.0
#include "support/deaf_port.h"

#include "support/sockets.h"

#include <poll.h>

#include <doctest/doctest.h>

namespace rlock::test {
namespace {

bool is_answered(const Fd& socket)
{
  constexpr int brief_ms = 200;
  pollfd writable{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  return ::poll(&writable, 1, brief_ms) != 0;
}

}  // namespace

DeafPort::DeafPort() : m_listener(tcp_listener(m_port))
{
  constexpr std::size_t most = 16;
  REQUIRE(::listen(m_listener.get(), 0) == 0);
  do {
    REQUIRE(m_waiting.size() < most);
    m_waiting.push_back(connect_to(m_port, SOCK_NONBLOCK));
  } while (is_answered(m_waiting.back()));
}

}  // namespace rlock::test
