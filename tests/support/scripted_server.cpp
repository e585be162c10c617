// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_server.h"

#include "support/sockets.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace rlock::test {

Fd listening_socket(Endpoint::Kind kind, Endpoint& endpoint)
{
  endpoint.kind = kind;
  if (kind == Endpoint::Kind::tcp) {
    return tcp_listener(endpoint.port);
  }
  endpoint.path = make_temp_dir("wire") / "socket";
  return unix_listener(endpoint.path);
}

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
