// SPDX-License-Identifier: Apache-2.0
// A server that means harm: it says what a test has chosen, to every connection at once, and for as long as the client listens.
#pragma once

#include "support/scripted_server.h"

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace rlock::test {

// What a server says to one connection. It may never return; it ends when the client is gone or the test is over.
using Script = std::function<void(const Peer&)>;

Script says(std::string bytes);                             // at once, and then nothing
Script says_for_ever(std::string head, std::string again);  // `head`, then `again` until the client hangs up
Script drips(std::string bytes);                            // a byte every 20 ms
Script answers(std::string reply);                          // to each request
// A reply for each request that contains a word of the list, the first that does; "" for the others.
struct Answer {
  std::string word;
  std::string reply;
  bool for_ever = false;  // the reply again and again, until the client hangs up
};
Script answers_by_word(std::vector<Answer> list);

class HostileServer {
 public:
  explicit HostileServer(Script script, Endpoint::Kind kind = Endpoint::Kind::unix_socket);
  // The script gets the server's own port, which is known when it listens.
  explicit HostileServer(const std::function<Script(std::uint16_t port)>& script);
  ~HostileServer();
  HostileServer(const HostileServer&) = delete;
  HostileServer& operator=(const HostileServer&) = delete;

  [[nodiscard]] std::string url() const { return m_endpoint.shown(); }
  [[nodiscard]] std::uint16_t port() const { return m_endpoint.port; }

 private:
  void accept_all();

  Endpoint m_endpoint;
  Fd m_listener;
  Script m_script;
  std::atomic<bool> m_over = false;
  std::list<std::thread> m_peers;  // only used by m_thread
  std::thread m_thread;
};

}  // namespace rlock::test
