// SPDX-License-Identifier: Apache-2.0
#include "support/etcd_peers.h"

#include "support/sockets.h"

#include <array>
#include <cstdio>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace rlock::test {
namespace {

constexpr int look_again_ms = 20;  // whether a link was cut
constexpr std::string_view sender_header = "X-Server-From: ";

std::string sender_in(std::string_view request)
{
  const auto at = request.find(sender_header);
  if (at == std::string_view::npos) {
    return "";
  }
  const std::string_view value = request.substr(at + sender_header.size());
  return std::string(value.substr(0, value.find('\r')));
}

}  // namespace

EtcdPeers::EtcdPeers(std::vector<std::uint16_t> ports)
{
  for (const std::uint16_t port : ports) {
    Relay& relay = m_relays.emplace_back(Relay{.to = port});
    relay.listener = tcp_listener(relay.port);
  }
  m_thread = signal_blocked_thread([this] { relay(); });
}

EtcdPeers::~EtcdPeers()
{
  m_over.request();
  m_thread.join();
}

void EtcdPeers::cut_off(std::size_t node, std::uint64_t member)
{
  std::array<char, 20> digits{};
  std::snprintf(digits.data(), digits.size(), "%llx", static_cast<unsigned long long>(member));
  const std::lock_guard guard(m_mutex);
  m_cut = Cut{.node = node, .member = digits.data()};
}

void EtcdPeers::join()
{
  const std::lock_guard guard(m_mutex);
  m_cut.reset();
}

bool EtcdPeers::is_cut(const Link& link) const
{
  const std::lock_guard guard(m_mutex);
  return m_cut && (link.to == m_cut->node || link.from == m_cut->member);
}

// False: one of the two is closed.
bool EtcdPeers::pass_on(Link& link, const Fd& from, const Fd& to) const
{
  std::array<char, 16384> bytes;  // NOLINT(*-member-init): recv fills it
  const ssize_t count = ::recv(from.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) {
    return false;
  }
  if (link.from.empty() && &from == &link.client) {
    link.from = sender_in({bytes.data(), static_cast<std::size_t>(count)});
  }
  if (is_cut(link)) {
    link.has_lost = true;
    return true;
  }
  return !link.has_lost && ::send(to.get(), bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL) == count;
}

void EtcdPeers::accept(std::size_t node)
{
  Link link{.to = node,
            .client = Fd(::accept4(m_relays[node].listener.get(), nullptr, nullptr, SOCK_CLOEXEC)),
            .server = connect_to(m_relays[node].to)};
  if (link.client && link.server) {
    m_links.push_back(std::move(link));
  }
}

void EtcdPeers::relay()
{
  for (;;) {
    std::vector<pollfd> waits{{m_over.token().fd(), POLLIN, 0}};
    for (const Relay& each : m_relays) {
      waits.push_back({each.listener.get(), POLLIN, 0});
    }
    for (const Link& link : m_links) {
      waits.push_back({is_cut(link) ? -1 : link.client.get(), POLLIN, 0});
      waits.push_back({is_cut(link) ? -1 : link.server.get(), POLLIN, 0});
    }
    ::poll(waits.data(), waits.size(), look_again_ms);
    if (waits[0].revents != 0) {
      return;
    }
    std::size_t at = 1 + m_relays.size();
    for (auto link = m_links.begin(); link != m_links.end(); at += 2) {
      const bool is_open = (!link->has_lost || is_cut(*link)) &&
                           (waits[at].revents == 0 || pass_on(*link, link->client, link->server)) &&
                           (waits[at + 1].revents == 0 || pass_on(*link, link->server, link->client));
      link = is_open ? std::next(link) : m_links.erase(link);
    }
    for (std::size_t node = 0; node < m_relays.size(); ++node) {
      if (waits[1 + node].revents != 0) {
        accept(node);
      }
    }
  }
}

}  // namespace rlock::test
