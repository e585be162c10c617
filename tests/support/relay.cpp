// SPDX-License-Identifier: Apache-2.0
#include "support/relay.h"

#include "support/sockets.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <array>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace rlock::test {
namespace {

bool send_all(const Fd& to, std::string_view text)
{
  return ::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace

Relay::Relay(const RedisServer& server)
    : m_server(server.socket_path()), m_path(make_temp_dir("relay") / "socket"), m_listener(unix_listener(m_path))
{
  m_thread = std::thread([this] { run(); });
}

Relay::~Relay()
{
  m_over = true;
  m_thread.join();
}

void Relay::forward()
{
  const std::lock_guard guard(m_mutex);
  m_reply.clear();
  m_loses = false;
}

void Relay::answer(const std::string& reply)
{
  const std::lock_guard guard(m_mutex);
  m_reply = reply;
}

void Relay::lose_answers()
{
  const std::lock_guard guard(m_mutex);
  m_loses = true;
}

void Relay::hold_next(const std::string& part)
{
  const std::lock_guard guard(m_mutex);
  m_to_hold = part;
}

bool Relay::holds() const
{
  const std::lock_guard guard(m_mutex);
  return !m_held.empty();
}

void Relay::deliver()
{
  const std::lock_guard guard(m_mutex);
  for (const Held& held : m_held) {
    REQUIRE(send_all(held.server, held.request));
    std::array<char, 4096> reply;  // NOLINT(*-member-init): recv fills it
    REQUIRE(::recv(held.server.get(), reply.data(), reply.size(), 0) > 0);
    CHECK_MESSAGE(reply[0] != '-', std::string(reply.data(), 20));
  }
  m_held.clear();
}

void Relay::before_next(const std::string& part, std::function<void()> act)
{
  const std::lock_guard guard(m_mutex);
  m_to_announce = part;
  m_before = std::move(act);
}

void Relay::run()
{
  while (!m_over) {
    std::vector<pollfd> waits{{.fd = m_listener.get(), .events = POLLIN, .revents = 0}};
    for (const Pair& pair : m_pairs) {
      waits.push_back({.fd = pair.client.get(), .events = POLLIN, .revents = 0});
      waits.push_back({.fd = pair.server.get(), .events = POLLIN, .revents = 0});
    }
    ::poll(waits.data(), waits.size(), 20);
    std::size_t at = 1;
    for (auto pair = m_pairs.begin(); pair != m_pairs.end(); at += 2) {
      const bool lasts =
          (waits[at].revents == 0 || pass(*pair, true)) && (waits[at + 1].revents == 0 || pass(*pair, false));
      pair = lasts ? std::next(pair) : m_pairs.erase(pair);
    }
    if (waits[0].revents != 0) {
      accept_one();
    }
  }
}

void Relay::accept_one()
{
  Pair pair{.client = Fd(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), .server = connect_to(m_server)};
  if (pair.client && pair.server) {
    m_pairs.push_back(std::move(pair));
  }
}

bool Relay::pass(Pair& pair, bool from_client)
{
  std::array<char, 65536> bytes;  // NOLINT(*-member-init): recv fills it
  const auto count = ::recv((from_client ? pair.client : pair.server).get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) {
    return false;
  }
  const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
  const std::lock_guard guard(m_mutex);
  if (from_client && !m_to_hold.empty() && text.find(m_to_hold) != std::string_view::npos) {
    m_to_hold.clear();
    m_held.push_back({.server = std::move(pair.server), .request = std::string(text)});
    return true;  // poll(2) passes over the descriptor that is gone
  }
  if (from_client && !m_to_announce.empty() && text.find(m_to_announce) != std::string_view::npos) {
    m_to_announce.clear();
    m_before();
  }
  if (from_client) {
    return m_reply.empty() ? send_all(pair.server, text) : send_all(pair.client, m_reply);
  }
  return !m_loses && send_all(pair.client, text);
}

}  // namespace rlock::test
