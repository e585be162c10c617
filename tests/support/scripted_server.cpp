// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_server.h"

#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <utility>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace rlock::test {

namespace {

Fd on_free_port(Endpoint& endpoint)
{
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener.get(), generic, size) == 0);
  REQUIRE(::getsockname(listener.get(), generic, &size) == 0);
  endpoint.port = ntohs(address.sin_port);
  return listener;
}

Fd on_unix_socket(Endpoint& endpoint)
{
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  endpoint.path = make_temp_dir("wire") / "socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  endpoint.path.copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  REQUIRE(::bind(listener.get(), generic, sizeof address) == 0);
  return listener;
}

}  // namespace

Fd listening_socket(Endpoint::Kind kind, Endpoint& endpoint)
{
  endpoint.kind = kind;
  Fd listener = kind == Endpoint::Kind::tcp ? on_free_port(endpoint) : on_unix_socket(endpoint);
  REQUIRE(::listen(listener.get(), 8) == 0);
  return listener;
}

CallLimits within(Millis time, StopToken stop) { return {real_clock.now() + time, stop}; }

bool Peer::say(std::string_view text) const
{
  return ::send(m_socket.get(), text.data(), text.size(), MSG_NOSIGNAL) > 0;
}

std::string Peer::hear(std::size_t count) const
{
  std::string heard(count, '\0');
  const auto read = ::recv(m_socket.get(), heard.data(), count, MSG_WAITALL);
  heard.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
  return heard;
}

bool Peer::lasts(Millis time) const
{
  pollfd wait{.fd = m_socket.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(time.count())) == 0 && !m_over;
}

std::string Peer::hear_some() const
{
  std::string heard(65536, '\0');
  const auto read = ::recv(m_socket.get(), heard.data(), heard.size(), 0);
  heard.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
  return heard;
}

ScriptedServer::ScriptedServer(std::function<void(const Peer&)> script, Endpoint::Kind kind)
    : m_listener(listening_socket(kind, m_endpoint))
{
  m_thread = std::thread([this, run = std::move(script)] {
    for (Fd next = accept_one(); next; next = accept_one()) {
      run(Peer(std::move(next), m_over));
    }
  });
}

ScriptedServer::~ScriptedServer()
{
  m_over = true;
  ::shutdown(m_listener.get(), SHUT_RDWR);
  m_thread.join();
}

Connection ScriptedServer::connect() const
{
  auto connection = Connection::open(m_endpoint, real_clock, within(plenty));
  REQUIRE(connection);
  return *std::move(connection);
}

Fd ScriptedServer::accept_one() const { return Fd(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

}  // namespace rlock::test
