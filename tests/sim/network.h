// SPDX-License-Identifier: Apache-2.0
// The connections between the simulated clients and the server. A client connects a real socket, and its bytes are real; the
// network reads them at once and delivers each request, answer and message when its virtual time has come, or loses it. In
// the way of TCP: in order, and after a loss nothing follows on that connection.
#pragma once

#include "base/fd.h"
#include "sim/server.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rlock::sim {

// The way between one client and the server. Until these times:
struct Link {
  Nanos cut_off_until = 0;  // nothing arrives; it arrives later
  Nanos loses_requests_until = 0;
  Nanos loses_answers_until = 0;
  Nanos slow_until = 0;  // up to `slow_by` more for each message
  Nanos slow_by = 0;
};

class Network {
 public:
  // `path`: of the socket to listen on.
  Network(World& world, Server& server, std::filesystem::path path, std::size_t clients, std::uint64_t seed);
  ~Network();

  // To be called after `process` has run: reads what it sent.
  void read_from(Process& process);
  void process_died(const Process& process);
  void cut_connections(int client);
  Link& link(int client) { return m_links[static_cast<std::size_t>(client)]; }
  void stop_server();  // all connections end; nobody can connect
  void start_server();
  [[nodiscard]] bool is_up() const { return m_listener.get() >= 0; }

  [[nodiscard]] Nanos latency(int client);  // of the next message, which is drawn

  // Told of what ends connections, for the connections of a store of records. The client -1: all.
  std::function<void(int client)> on_cut;
  std::function<void(const Process& process)> on_death;
  std::function<void()> on_start;

  std::function<void(const Words& request)> before_request;
  std::function<void(int client, const Words& request, const Reply& answer)> after_request;
  Nanos longest_latency = 1'000'000;

 private:
  struct Connection {
    Fd socket;
    const Process* owner;
    int client;
    std::string unread;       // bytes of an incomplete request
    Nanos last_arrival = 0;   // of a request
    Nanos last_delivery = 0;  // of an answer or message
    bool requests_lost = false;
    bool answers_lost = false;
    bool end_is_read = false;  // the client closed it
    std::set<std::string> channels;
  };
  using Id = std::uint64_t;

  void accept_all(Process& process);
  void read(Id id, Connection& connection);
  void arrive(Id id, const Words& request);
  void deliver(Id id, const std::string& bytes);
  void close_later(Id id);
  std::int64_t publish(const std::string& channel, const std::string& text);
  std::string subscribe(Connection& connection, const Words& request);

  World& m_world;
  Server& m_server;
  const std::filesystem::path m_path;
  Fd m_listener;
  std::vector<Link> m_links;
  std::vector<SeededRng> m_rngs;  // one for each client, so that the others change little when a client is left out
  std::map<Id, Connection> m_connections;
  Id m_next = 1;
};

}  // namespace rlock::sim
