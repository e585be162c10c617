// SPDX-License-Identifier: Apache-2.0
// The requests and answers of ZooKeeper (3.5 or later) that rlock uses, without their sockets. Pure functions. Private to
// stores/zookeeper. Source: zookeeper.jute and ZooDefs.java of Apache ZooKeeper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"

namespace rlock::zookeeper {

// The limit of a server for one request (jute.maxbuffer). A server ends the connection of a client that sends more.
inline constexpr std::size_t longest_request = 0xfffff;
// The answers to a lock client are far smaller.
inline constexpr std::size_t longest_answer = std::size_t{16} << 20;

inline constexpr std::size_t size_of_length = 4;  // before each request and answer

// What a server says of a request.
enum class Code : std::int32_t {
  ok = 0,
  runtime_inconsistency = -2,  // an operation of a multi that came after the one that failed
  unimplemented = -6,
  bad_arguments = -8,
  no_node = -101,
  no_auth = -102,
  bad_version = -103,
  no_children_for_ephemerals = -108,
  node_exists = -110,
  not_empty = -111,
  session_expired = -112,
  auth_failed = -115,
  session_moved = -118,
};

inline constexpr std::int32_t any_version = -1;

struct Session {
  std::int64_t id = 0;  // 0: none
  std::string password;
};

struct Stat {
  std::int64_t czxid = 0;
  std::int64_t mzxid = 0;
  std::int64_t created_ms = 0;  // by the clock of the leader, since 1970
  std::int32_t version = 0;
  std::int64_t ephemeral_owner = 0;  // the id of a session; 0: the node is not ephemeral
  std::int32_t children = 0;
};

// ConnectRequest.
std::string connect_request(const Session& session, std::int64_t last_zxid, std::int32_t timeout_ms);
struct Connected {
  Session session;
  std::int32_t timeout_ms = 0;  // 0: the session has expired
};
// nullopt: the frame is invalid.
std::optional<Connected> connected(std::string_view frame);

enum class CreateMode : std::int32_t { persistent = 0, ephemeral = 1, ephemeral_sequential = 3, container = 4 };

// An operation: a request without its header, which may also be a part of a multi.
struct Operation {
  std::int32_t type = 0;
  std::string body;
  std::size_t parts = 0;  // of a multi
};
// `is_private`: only those may use the node who have authenticated as its creator did; else everybody may.
Operation create(std::string_view path, std::string_view data, CreateMode mode, bool is_private);
Operation remove(std::string_view path, std::int32_t version);
Operation set_data(std::string_view path, std::string_view data, std::int32_t version);
Operation check(std::string_view path, std::int32_t version);
Operation exists(std::string_view path, bool watches);
Operation get_data(std::string_view path, bool watches);
Operation get_children(std::string_view path);
Operation sync(std::string_view path);
Operation multi(std::span<const Operation> operations);
Operation ping();
Operation close_session();
Operation digest_auth(std::string_view user, std::string_view password);

// The frame of a request without its length. A ping and an authentication have numbers of their own.
std::string frame_of(const Operation& operation, std::int32_t number);
std::int32_t number_of(const Operation& operation, std::int32_t next);

// An answer to one operation, of which it has the fields.
struct Answer {
  Code code = Code::ok;
  std::int64_t zxid = 0;                   // of the last change that the server knew
  Stat stat;                               // create, set_data, exists, get_data
  std::string data;                        // get_data
  std::vector<std::string> children = {};  // get_children
  std::vector<Answer> parts = {};          // multi; of one that failed: the code of each part
  [[nodiscard]] bool is_ok() const { return code == Code::ok; }
};

// The header of what a server sends after the ConnectResponse, and what follows it.
struct Received {
  std::int32_t number = 0;
  std::int64_t zxid = 0;
  Code code = Code::ok;
  std::string_view rest;  // a part of the frame
};
inline constexpr std::int32_t event_number = -1;
std::optional<Received> received(std::string_view frame);
// nullopt: the answer is invalid.
std::optional<Answer> answer_to(const Operation& operation, const Received& received);

// A watched node has changed, has come or has gone.
struct WatchEvent {
  std::int32_t type = 0;  // none (-1): the connection, which has no path
  std::string path;
};
std::optional<WatchEvent> watch_event(std::string_view rest);

}  // namespace rlock::zookeeper
