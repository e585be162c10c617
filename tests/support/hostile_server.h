// SPDX-License-Identifier: Apache-2.0
// A hostile server: sends what a test has chosen, to every connection at the same time, while the client listens.
#pragma once

#include "support/scripted_server.h"

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>

namespace rlock::test {

// Serves one connection. A script may run for ever: it ends when the client is gone or the test is over.
using Behavior = std::function<void(const Peer&)>;

Behavior says(std::string bytes);                             // sends the bytes at once, and then nothing
Behavior says_for_ever(std::string head, std::string again);  // sends `head`, then `again` until the client hangs up
Behavior drips(std::string bytes);                            // sends a byte every 20 ms
Behavior answers_with(std::string reply);                     // sends the reply to each request
// Sends the reply of the first word in the list that the request contains; the word "" stands for all other requests.
struct Answer {
  std::string word;
  std::string reply;
  bool for_ever = false;  // repeats the reply until the client hangs up
};
Behavior answers_by_word(std::vector<Answer> list);

class HostileServer {
 public:
  explicit HostileServer(Behavior script, Endpoint::Kind kind = Endpoint::Kind::unix_socket);
  // The script gets the server's port, which is known when the server listens.
  explicit HostileServer(const std::function<Behavior(std::uint16_t port)>& script);
  ~HostileServer();
  HostileServer(const HostileServer&) = delete;
  HostileServer& operator=(const HostileServer&) = delete;

  [[nodiscard]] std::string url() const { return m_endpoint.shown(); }
  [[nodiscard]] std::uint16_t port() const { return m_endpoint.port; }

 private:
  void accept_all();

  Endpoint m_endpoint;
  Fd m_listener;
  Behavior m_script;
  std::atomic<bool> m_over = false;
  std::list<std::thread> m_peers;  // only used by m_thread
  std::thread m_thread;
};

}  // namespace rlock::test
