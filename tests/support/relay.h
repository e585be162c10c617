// SPDX-License-Identifier: Apache-2.0
// A relay between rlock and a real server: passes all bytes on, or sends the replies that a test has chosen.
#pragma once

#include "base/fd.h"
#include "support/redis_fixture.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace rlock::test {

class Relay {
 public:
  explicit Relay(const RedisServer& server);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + m_path.string(); }

  void forward();                         // passes all bytes on, which is the initial behaviour
  void answer(const std::string& reply);  // sends the reply to all requests, which do not reach the server
  void lose_answers();                    // passes the next requests on, and closes the connection instead of an answer
  void hold_next(
      const std::string& part);  // keeps the next request that contains `part`, without an answer, until deliver()
  [[nodiscard]] bool holds() const;
  void deliver();  // sends the kept request to the server, which has answered at the return
  // Runs `act` once, in the relay's thread, before it passes on the next request that contains `part`.
  void before_next(const std::string& part, std::function<void()> act);

 private:
  struct Pair {
    Fd client;
    Fd server;
  };
  void run();
  void accept_one();
  bool pass(Pair& pair, bool from_client);  // false: the connection is over
  struct Held {
    Fd server;
    std::string request;
  };

  const std::filesystem::path m_server;
  const std::filesystem::path m_path;
  Fd m_listener;
  std::list<Pair> m_pairs;  // only used by the relay's thread

  mutable std::mutex m_mutex;
  std::string m_reply;             // empty: forward; guarded by m_mutex
  std::string m_to_hold;           // empty: nothing; guarded by m_mutex
  std::list<Held> m_held;          // guarded by m_mutex
  std::string m_to_announce;       // empty: nothing; guarded by m_mutex
  std::function<void()> m_before;  // guarded by m_mutex
  bool m_loses = false;            // guarded by m_mutex
  std::atomic<bool> m_over = false;
  std::thread m_thread;
};

}  // namespace rlock::test
