// SPDX-License-Identifier: Apache-2.0
// A server that sends what a test has chosen, with exact bytes and pauses, on a unix socket or on a free port.
#pragma once

#include "base/call_limits.h"
#include "base/clock.h"
#include "base/fd.h"
#include "net/connection.h"
#include "server/url.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace rlock::test {

inline const BootClock real_clock;
constexpr Millis plenty{10'000};  // for events that are expected at once

CallLimits within(Millis time, StopToken stop = StopToken::never());

// A listening socket: of Kind::tcp on a free port, else a unix socket in a directory of the test. `endpoint` gets its address.
Fd listening_socket(Endpoint::Kind kind, Endpoint& endpoint);

// One connection as the server's script sees it.
class Peer {
 public:
  Peer(Fd socket, const std::atomic<bool>& over) : m_socket(std::move(socket)), m_over(over) {}

  bool say(std::string_view text) const;      // false: the client hung up
  std::string hear(std::size_t count) const;  // so many bytes, fewer if the client hangs up
  std::string hear_some() const;              // what has arrived, at least a byte; empty: the client hung up
  bool lasts(Millis time) const;              // false, and early, once the client is gone or the test over

 private:
  Fd m_socket;
  const std::atomic<bool>& m_over;
};

class ScriptedServer {
 public:
  // The script is run for each connection, one after the other, on a thread of its own.
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
