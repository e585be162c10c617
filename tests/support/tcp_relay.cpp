// SPDX-License-Identifier: Apache-2.0
#include "support/tcp_relay.h"

#include "support/sockets.h"

#include <array>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace rlock::test {
namespace {

constexpr int look_again_ms = 20;  // whether the links must end

}  // namespace

TcpRelay::TcpRelay(std::uint16_t to) : m_to(to), m_listener(tcp_listener(m_port))
{
  m_thread = signal_blocked_thread([this] { relay(); });
}

TcpRelay::~TcpRelay()
{
  m_over.request();
  m_thread.join();
}

// False: one of the two is closed.
bool TcpRelay::pass_on(const Fd& from, const Fd& to) const
{
  std::array<char, 16384> bytes;  // NOLINT(*-member-init): recv fills it
  const ssize_t count = ::recv(from.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) {
    return false;
  }
  return m_is_frozen || ::send(to.get(), bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL) == count;
}

void TcpRelay::relay()
{
  for (;;) {
    if (m_ends_links.exchange(false)) {
      m_links.clear();
    }
    std::vector<pollfd> waits{{m_over.token().fd(), POLLIN, 0}, {m_listener.get(), POLLIN, 0}};
    for (const Link& link : m_links) {
      waits.push_back({link.client.get(), POLLIN, 0});
      waits.push_back({link.server.get(), POLLIN, 0});
    }
    ::poll(waits.data(), waits.size(), look_again_ms);
    if (waits[0].revents != 0) {
      return;
    }
    std::size_t at = 2;
    for (auto link = m_links.begin(); link != m_links.end(); at += 2) {
      const bool is_open = (waits[at].revents == 0 || pass_on(link->client, link->server)) &&
                           (waits[at + 1].revents == 0 || pass_on(link->server, link->client));
      link = is_open ? std::next(link) : m_links.erase(link);
    }
    if (waits[1].revents != 0) {
      Link link{Fd(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), connect_to(m_to)};
      if (link.client && link.server) {
        m_links.push_back(std::move(link));
        ++m_connections;
      }
    }
  }
}

}  // namespace rlock::test
