// SPDX-License-Identifier: Apache-2.0
// A relay between rlock and a real server on a unix socket. It passes requests on, or makes some fail, each in one of the ways
// below. It works on bytes, so what rlock does about a broken connection is part of a test.
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "base/stop.h"
#include "support/redis_fixture.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace rlock::test {

enum class Fault {
  not_sent,        // the connection is cut before the server has the request
  half_sent,       // the same after half of the request
  answer_lost,     // the server has executed the request; the connection is cut instead of the answer
  answer_cut,      // the same after half of the answer
  answer_stuck,    // half of the answer, and then silence
  answer_dripped,  // byte by byte, in time
  answer_late,     // in time
  answer_too_late,
  request_late,     // the server executes the request after the client gave it up and has gone on
  sent_twice,       // the client gets the second answer; both answers and the state after each must be the same
  answer_replaced,  // the client gets Relay::answer's reply, and the server does not get the request
  held,             // the request is kept without an answer until Relay::deliver
};

// The locks on a server at one moment.
struct KeysSeen {
  std::string text;              // without what is left of a ttl
  std::int64_t now_ms = 0;       // by the server's clock
  std::int64_t expires_ms = -1;  // the first of the keys, if no request changes that; negative: none does
  [[nodiscard]] bool has_expired_at(std::int64_t ms) const { return expires_ms >= 0 && expires_ms <= ms; }
};

// Functions may be empty. They are called by the threads of the connections.
struct RelayOptions {
  // How the next request fails; nullopt: it does not.
  std::function<std::optional<Fault>(std::string_view request)> choose = {};
  Millis late{0};      // what counts as late but in time
  Millis too_late{0};  // longer than any client waits for an answer
  // Held while a server executes a request and after_request runs; null: nothing is. Relays may share it.
  std::mutex* executing = nullptr;
  // Called after the server has executed a request, or the request was lost, and before the client has the answer.
  std::function<void()> after_request = {};
  // For Fault::sent_twice.
  std::function<KeysSeen()> keys = {};
};

class Relay {
 public:
  Relay(std::filesystem::path server, RelayOptions options);
  // Requests fail as the functions below say.
  explicit Relay(const RedisServer& server);
  // Delivers what is still late, and ends all connections.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + m_path.string(); }

  void forward();                           // the initial behaviour
  void answer(const std::string& reply);    // to all requests
  void lose_answers();                      // to all requests
  void hold_next(const std::string& part);  // the next request that contains `part`
  [[nodiscard]] bool holds() const;
  void deliver();  // sends what is held to the server, which has answered it when this returns
  // `act` runs once, before the next request with `part` in it is passed on.
  void before_next(const std::string& part, std::function<void()> act);

  // What was different when a request was sent twice.
  [[nodiscard]] std::vector<std::string> differences() const;
  // Not empty: between two requests a key has expired, so they could not be compared.
  [[nodiscard]] std::string too_slow() const;

 private:
  class Session;
  // What happens to the requests that contain `part`.
  struct Rule {
    std::string part;
    std::optional<Fault> fault;
    std::function<void()> act;
    bool once = false;
  };
  struct Held {
    Fd server;
    std::string request;
  };
  void accept_all();
  void set(std::optional<Fault> fault, std::string reply);
  std::optional<Fault> apply_rules(std::string_view request);

  const std::filesystem::path m_server;
  const std::filesystem::path m_path;
  const RelayOptions m_options;
  Fd m_listener;
  mutable std::mutex m_mutex;  // guards the next five
  std::list<Rule> m_rules;
  std::string m_reply;
  std::list<Held> m_held;
  std::vector<std::string> m_differences;
  std::string m_too_slow;
  StopSource m_over;
  std::vector<std::thread> m_sessions;  // only used by m_acceptor, and after its end
  std::thread m_acceptor;
};

}  // namespace rlock::test
