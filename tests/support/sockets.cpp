// SPDX-License-Identifier: Apache-2.0
#include "support/sockets.h"

#include "net/endpoint.h"

#include <cerrno>
#include <random>
#include <system_error>

#include <netinet/in.h>

namespace rlock::test {
namespace {

constexpr int most_unaccepted = 512;

Fd stream_socket(int family, int flags) { return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); }

void demand(bool done, const std::string& what)
{
  if (!done) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

sockaddr_in loopback(std::uint16_t port)
{
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

}  // namespace

Fd unix_listener(const std::filesystem::path& path, int flags)
{
  Fd listener = stream_socket(AF_UNIX, flags);
  const sockaddr_un address = socket_address(path.string());
  demand(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, path);
  demand(::listen(listener.get(), most_unaccepted) == 0, path);
  return listener;
}

Fd tcp_listener(std::uint16_t& port, int flags)
{
  Fd listener = stream_socket(AF_INET, flags);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  demand(::bind(listener.get(), any, size) == 0, "127.0.0.1");
  demand(::listen(listener.get(), most_unaccepted) == 0, "127.0.0.1");
  demand(::getsockname(listener.get(), any, &size) == 0, "127.0.0.1");
  port = ntohs(address.sin_port);
  return listener;
}

std::uint16_t free_port()
{
  constexpr std::uint16_t first = 10'000;
  constexpr std::uint16_t last = 32'000;  // the kernel's own begin at 32768
  static std::mt19937 random(std::random_device{}());
  for (;;) {
    const auto port = std::uniform_int_distribution<std::uint16_t>(first, last)(random);
    const Fd socket = stream_socket(AF_INET, 0);
    const sockaddr_in address = loopback(port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return port;
    }
  }
}

Fd connect_to(const std::filesystem::path& path, int flags)
{
  Fd socket = stream_socket(AF_UNIX, flags);
  const sockaddr_un address = socket_address(path.string());
  const bool done = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return done ? std::move(socket) : Fd();
}

// Without blocking, a connection that is not there yet is refused, or can be written, later.
Fd connect_to(std::uint16_t port, int flags)
{
  Fd socket = stream_socket(AF_INET, flags);
  const sockaddr_in address = loopback(port);
  const bool done = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return done || errno == EINPROGRESS ? std::move(socket) : Fd();
}

SilentPort::SilentPort() : m_listener(tcp_listener(m_number))
{
  demand(::listen(m_listener.get(), 0) == 0, "127.0.0.1");
  constexpr int more_than_fit = 3;
  for (int i = 0; i < more_than_fit; ++i) {
    m_waiting.push_back(connect_to(m_number, SOCK_NONBLOCK));
  }
}

}  // namespace rlock::test
