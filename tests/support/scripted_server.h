// SPDX-License-Identifier: Apache-2.0
// A server that sends the bytes and makes the pauses that a test has chosen, on a unix socket or on a free port.
#pragma once

#include "base/clock.h"
#include "base/defaults.h"
#include "base/fd.h"
#include "redis/connection.h"
#include "redis/url.h"
#include "support/limits.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace rlock::test {

inline const BootClock real_clock;
constexpr Millis plenty{10'000};  // the time limit for events that should happen at once

// Makes a listening socket: Kind::tcp: on a free port; else a unix socket in a directory of the test. Sets the address in
// `endpoint`.
Fd listening_socket(Endpoint::Kind kind, Endpoint& endpoint);

// One connection, as the script of the server uses it.
class Peer {
 public:
  Peer(Fd socket, const std::atomic<bool>& over) : m_socket(std::move(socket)), m_over(over) {}

  bool say(std::string_view text) const;      // false: the client hung up
  std::string hear(std::size_t count) const;  // reads `count` bytes, or fewer if the client hangs up
  std::string hear_some() const;  // reads the bytes that have arrived, at least one; empty: the client hung up
  bool lasts(Millis time) const;  // waits; false, before the end of `time`: the client is gone or the test is over

 private:
  Fd m_socket;
  const std::atomic<bool>& m_over;
};

class ScriptedServer {
 public:
  // Runs the script for each connection, one after the other, on a thread of its own.
  explicit ScriptedServer(std::function<void(const Peer&)> script, Endpoint::Kind kind = Endpoint::Kind::unix_socket);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const { return m_endpoint; }
  [[nodiscard]] Connection connect() const;

 private:
  [[nodiscard]] Fd accept_one() const;

  Endpoint m_endpoint;
  Fd m_listener;
  std::atomic<bool> m_over = false;
  std::thread m_thread;
};

}  // namespace rlock::test
