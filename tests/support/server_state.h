// SPDX-License-Identifier: Apache-2.0
// States in which a real server refuses what we ask of it, and how to bring one about.
#pragma once

#include "net/connection.h"
#include "support/redis_fixture.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rlock::test {

// A server with a connection that stays whatever becomes of the others.
struct Scene {
  explicit Scene(const std::vector<std::string>& args);

  RedisServer server;
  Connection admin;
  std::optional<Connection> second;  // of a state that keeps the server at work

  Reply tell(const std::vector<std::string>& words);  // on `admin`; an error comes back
  void must(const std::vector<std::string>& words);   // and it is no error
  void send(const std::vector<std::string>& words);   // on `second`, whose answer may never come
  void cut();                                         // every connection but `admin`
};

struct ServerState {
  std::string name;
  std::vector<std::string> args;      // of a server that can get into it
  std::string user;                   // "user:password@", as whom rlock comes
  std::function<void(Scene&)> begin;  // returns when the server is in it
  std::function<void(Scene&)> end;    // and out of it
  int code;                           // of an acquire that meets it
  std::string says;                   // in its line
  bool renewable = false;             // what is held goes on, and is released
};

std::span<const ServerState> server_states();

}  // namespace rlock::test
