// SPDX-License-Identifier: Apache-2.0
// States in which a real server refuses requests of rlock. Each state has a function that puts the server into it.
#pragma once

#include "redis/connection.h"
#include "support/redis_fixture.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rlock::test {

// A server with a connection that stays open when the other connections are closed.
struct ServerStateFixture {
  explicit ServerStateFixture(const std::vector<std::string>& args);

  RedisServer server;
  Connection admin;
  std::optional<Connection> second;  // for a state that keeps the server busy

  Reply command(const std::vector<std::string>& words);      // on `admin`; returns errors
  void must_succeed(const std::vector<std::string>& words);  // on `admin`; an error fails the test
  void send_only(const std::vector<std::string>& words);     // on `second`; does not wait for an answer
  void cut_connections();                                    // closes all connections but `admin`
};

struct ServerState {
  std::string name;
  std::vector<std::string> args;                   // arguments of a server that can get into the state
  std::string user;                                // "user:password@" of rlock
  std::function<void(ServerStateFixture&)> begin;  // returns when the server is in the state
  std::function<void(ServerStateFixture&)> end;    // returns when the server has left it
  int code;                                        // exit code of an acquire in this state
  std::string says;                                // part of its message
  bool renewable = false;                          // the server renews and releases a held lock in this state
};

std::span<const ServerState> server_states();

}  // namespace rlock::test
