// SPDX-License-Identifier: Apache-2.0
#include "sim/network.h"

#include "support/redis_protocol.h"
#include "support/sockets.h"

#include <algorithm>
#include <array>

#include <sys/socket.h>

namespace rlock::sim {

using test::encoded;

Network::Network(World& world, Server& server, std::filesystem::path path, std::size_t clients, std::uint64_t seed)
    : m_world(world), m_server(server), m_path(std::move(path)), m_links(clients)
{
  for (std::size_t i = 0; i < clients; ++i) {
    m_rngs.emplace_back(seed * 31 + i);
  }
  m_server.redis().on_publish = [this](const auto& channel, const auto& text) { return publish(channel, text); };
  m_server.redis().count_subscribers = [this](const std::string& channel) {
    return std::count_if(m_connections.begin(), m_connections.end(),
                         [&](const auto& each) { return each.second.channels.contains(channel); });
  };
  start_server();
}

Network::~Network() { std::filesystem::remove(m_path); }

void Network::start_server()
{
  std::filesystem::remove(m_path);
  m_listener = test::unix_listener(m_path, SOCK_NONBLOCK);
  if (on_start) {
    on_start();
  }
}

void Network::stop_server()
{
  m_listener.reset();
  m_connections.clear();
  if (on_cut) {
    on_cut(-1);
  }
}

Nanos Network::latency(int client)
{
  SeededRng& rng = m_rngs[static_cast<std::size_t>(client)];
  const Link& way = link(client);
  const Nanos now = m_world.now();
  Nanos time = 20'000 + rng.up_to(longest_latency);
  if (rng.one_in(50)) {
    time += rng.up_to(20 * longest_latency);
  }
  if (now < way.slow_until) {
    time += rng.up_to(way.slow_by);
  }
  return std::max(now, way.cut_off_until) - now + time;
}

void Network::accept_all(Process& process)
{
  while (m_listener.get() >= 0) {
    Fd socket(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      return;
    }
    m_connections.emplace(m_next++,
                          Connection{.socket = std::move(socket), .owner = &process, .client = process.client});
  }
}

void Network::read_from(Process& process)
{
  accept_all(process);
  for (auto& [id, connection] : m_connections) {
    if (connection.owner == &process && !connection.end_is_read) {
      read(id, connection);
    }
  }
}

void Network::read(Id id, Connection& connection)
{
  std::array<char, 65536> bytes;  // NOLINT(*-member-init): recv fills it
  for (;;) {
    const ssize_t count = ::recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
    if (count < 0) {
      return;
    }
    if (count == 0) {
      connection.end_is_read = true;
      return close_later(id);
    }
    connection.unread.append(bytes.data(), static_cast<std::size_t>(count));
    for (Words words = test::take_request(connection.unread); !words.empty();
         words = test::take_request(connection.unread)) {
      connection.requests_lost =
          connection.requests_lost || m_world.now() < link(connection.client).loses_requests_until;
      if (!connection.requests_lost) {
        connection.last_arrival = std::max(connection.last_arrival + 1, m_world.now() + latency(connection.client));
        m_world.at(connection.last_arrival, [this, id, words] { arrive(id, words); });
      }
    }
  }
}

// The server learns of the end in the order of the requests. The end of a connection that lost something is found by
// keep-alive.
void Network::close_later(Id id)
{
  constexpr Nanos keep_alive = 5'000'000'000;
  Connection& connection = m_connections.at(id);
  connection.last_arrival = std::max(connection.last_arrival + 1, m_world.now() + latency(connection.client));
  m_world.at(connection.last_arrival + (connection.requests_lost ? keep_alive : 0),
             [this, id] { m_connections.erase(id); });
}

void Network::process_died(const Process& process)
{
  if (on_death) {
    on_death(process);
  }
  for (auto& [id, connection] : m_connections) {
    if (connection.owner == &process && !connection.end_is_read) {
      connection.end_is_read = true;
      close_later(id);
    }
  }
}

void Network::cut_connections(int client)
{
  std::erase_if(m_connections, [&](const auto& each) { return each.second.client == client; });
  if (on_cut) {
    on_cut(client);
  }
}

void Network::arrive(Id id, const Words& request)
{
  const auto found = m_connections.find(id);
  if (found == m_connections.end()) {
    return;
  }
  Connection& connection = found->second;
  if (request[0] == "SUBSCRIBE") {
    return deliver(id, subscribe(connection, request));
  }
  if (before_request) {
    before_request(request);
  }
  const int client = connection.client;
  const Reply answer = m_server.execute(request);
  deliver(id, encoded(answer));
  if (after_request) {
    after_request(client, request, answer);
  }
}

void Network::deliver(Id id, const std::string& bytes)
{
  Connection& connection = m_connections.at(id);
  connection.answers_lost = connection.answers_lost || m_world.now() < link(connection.client).loses_answers_until;
  if (connection.answers_lost) {
    return;
  }
  connection.last_delivery = std::max(connection.last_delivery + 1, m_world.now() + latency(connection.client));
  m_world.at(connection.last_delivery, [this, id, bytes] {
    if (const auto found = m_connections.find(id); found != m_connections.end()) {
      ::send(found->second.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  });
}

std::string Network::subscribe(Connection& connection, const Words& request)
{
  std::string answer;
  for (std::size_t i = 1; i < request.size(); ++i) {
    connection.channels.insert(request[i]);
    answer += encoded(Reply::array({Reply::of("subscribe"), Reply::of(request[i]),
                                    Reply::of(static_cast<std::int64_t>(connection.channels.size()))}));
  }
  return answer;
}

std::int64_t Network::publish(const std::string& channel, const std::string& text)
{
  const std::string message = encoded(Reply::list({"message", channel, text}));
  std::int64_t heard = 0;
  for (const auto& [id, connection] : m_connections) {
    if (connection.channels.contains(channel)) {
      deliver(id, message);
      ++heard;
    }
  }
  return heard;
}

}  // namespace rlock::sim
