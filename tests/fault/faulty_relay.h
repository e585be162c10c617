// SPDX-License-Identifier: Apache-2.0
// A relay between rlock and a real server on a unix socket, which makes requests fail as a FaultPlan says. It works on
// bytes, so what rlock does about a broken connection is part of the test.
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "base/stop.h"
#include "fault/fault_plan.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace rlock::test {

// The locks on a server at one moment.
struct KeysSeen {
  std::string text;              // without what is left of a ttl
  std::int64_t now_ms = 0;       // by the server's clock
  std::int64_t expires_ms = -1;  // the first of the keys, if no request changes that; negative: none does
  [[nodiscard]] bool has_expired_at(std::int64_t ms) const { return expires_ms >= 0 && expires_ms <= ms; }
};

struct FaultyRelayOptions {
  Millis late;        // what counts as late but in time
  Millis too_late;    // longer than any client waits for an answer
  bool fails = true;  // false: its requests are not counted and do not fail
  // Called after the server has executed a request, or the request was lost, and before the client has the answer. May
  // be empty. Called while FaultPlan::executing is held.
  std::function<void()> after_request = {};
  // For Fault::sent_twice. May be empty.
  std::function<KeysSeen()> keys = {};
};

class FaultyRelay {
 public:
  // `plan` must outlive it.
  FaultyRelay(std::filesystem::path server, FaultPlan& plan, FaultyRelayOptions options);
  // Delivers what is still late, and ends all connections.
  ~FaultyRelay();
  FaultyRelay(const FaultyRelay&) = delete;
  FaultyRelay& operator=(const FaultyRelay&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + m_path.string(); }
  // What was different when a request was sent twice.
  [[nodiscard]] std::vector<std::string> differences() const;
  // Not empty: between two requests a key has expired, so they could not be compared.
  [[nodiscard]] std::string too_slow() const;

 private:
  class Session;
  void accept_all();

  const std::filesystem::path m_server;
  const std::filesystem::path m_path;
  FaultPlan& m_plan;
  const FaultyRelayOptions m_options;
  Fd m_listener;
  mutable std::mutex m_mutex;
  std::vector<std::string> m_differences;  // guarded by m_mutex, as the next one
  std::string m_too_slow;
  StopSource m_over;
  std::vector<std::thread> m_sessions;  // only used by m_acceptor, and after its end
  std::thread m_acceptor;
};

// How many bytes the first request of `bytes` has; 0: it is not complete.
std::size_t request_size(std::string_view bytes);

}  // namespace rlock::test
