// SPDX-License-Identifier: Apache-2.0
// Stands between rlock and one server: passes everything on, or disturbs all or some of the connections for a while.
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "base/stop.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace rlock::judge {

enum class Harm {
  delay,    // each piece arrives `pause` later
  drip,     // a few bytes arrive at a time, `pause` apart
  hold,     // nothing arrives before the disturbance ends, then everything: a network that is cut for a while
  swallow,  // what is sent never arrives; these connections end with the disturbance
  cut,      // the connections are reset, and new ones as well
};

enum class Direction { both, to_server, to_client };

// `cut` in one direction leaves the connection half open until the disturbance ends. to_server: the server's end is
// closed and the client is not told; to_client: the client's end is closed and the server is not told.
struct Disturbance {
  Harm harm = Harm::delay;
  Direction direction = Direction::both;
  Millis pause{0};
  unsigned percent = 100;  // how many of the connections, existing and new ones
  std::uint64_t seed = 0;  // chooses them
};

// Connects to the unix socket or the port of the server for each client. Thread-safe.
class Proxy {
 public:
  enum class Listens { unix_socket, tcp };
  Proxy(std::filesystem::path server, Listens listens);
  explicit Proxy(std::uint16_t server_port);  // listens on a port, too
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  [[nodiscard]] std::string url() const;                       // of the unix socket
  [[nodiscard]] std::uint16_t port() const { return m_port; }  // of 127.0.0.1; 0: a unix socket

  void begin(const Disturbance& disturbance);
  // Everything passes again when this returns. How many pieces and connections were disturbed.
  std::uint64_t end();

 private:
  // What was received and has not been sent on, in one direction of a connection.
  struct Piece {
    Instant due;
    std::string bytes;  // empty: the sender has closed the connection
  };
  struct Flow {
    Fd from;
    bool over = false;  // nothing more comes from there
    std::list<Piece> waiting;
  };
  struct Connection {
    Flow requests;  // from the client
    Flow replies;   // from the server
    bool disturbed = false;
    bool broken = false;  // it has lost bytes, so it must end with the disturbance
  };
  using Connections = std::list<Connection>;

  void run();
  std::vector<pollfd> waits(Instant& until) REQUIRES(m_mutex);
  void accept_one() REQUIRES(m_mutex);
  void serve(const std::vector<pollfd>& waits) REQUIRES(m_mutex);
  void receive(Connection& connection, Direction direction) REQUIRES(m_mutex);
  void add(Connection& connection, Direction direction, std::string bytes) REQUIRES(m_mutex);
  bool choose() REQUIRES(m_mutex);
  bool is_cut(Connection& connection) REQUIRES(m_mutex);
  static bool send_due(Flow& flow, const Fd& to);  // false: the connection is over
  [[nodiscard]] bool disturbs(Direction direction) const REQUIRES(m_mutex);
  void wake() const;

  void listen(Listens listens);
  [[nodiscard]] Fd connect_to_server() const;

  const std::filesystem::path m_server;
  const std::uint16_t m_server_port = 0;  // 0: m_server is its socket
  std::filesystem::path m_path;
  std::uint16_t m_port = 0;
  Fd m_listener;
  Fd m_wake;

  Mutex m_mutex;
  Connections m_connections GUARDED_BY(m_mutex);
  Disturbance m_disturbance GUARDED_BY(m_mutex);
  bool m_disturbed GUARDED_BY(m_mutex) = false;
  std::uint64_t m_count GUARDED_BY(m_mutex) = 0;    // of what was disturbed
  std::uint64_t m_changes GUARDED_BY(m_mutex) = 0;  // of the disturbance, which removes connections
  std::mt19937_64 m_random GUARDED_BY(m_mutex);
  std::atomic<bool> m_over = false;
  std::thread m_thread;
};

}  // namespace rlock::judge
