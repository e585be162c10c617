// SPDX-License-Identifier: Apache-2.0
// One connection to a MongoDB server, the primary of its replica set, by libmongoc without threads: each request ends by its
// deadline. Private to stores/mongo.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "stores/mongo/mongo_document.h"
#include "stores/mongo/mongo_stream.h"
#include "stores/mongo/mongo_url.h"

namespace rlock::mongo {

inline constexpr std::int64_t oldest_wire_version = 9;  // of MongoDB 4.4

// What a server says of itself in its answer to `hello`.
struct ServerFacts {
  std::int64_t time_ms = 0;  // its clock, since 1970
  std::string replica_set;   // its name; empty: the server is alone
  bool is_primary = false;
  bool is_mongos = false;
  std::int64_t wire_version = 0;
};

// An error as the server writes it.
struct ServerError {
  std::int64_t code = 0;
  std::string text;
};

// What the codes of errors mean.
constexpr std::int64_t duplicate_key = 11000;
constexpr std::int64_t unauthorized = 13;
// A document of more than 16 MB: BSONObjectTooLarge, of an insert, after an update.
constexpr std::array<std::int64_t, 3> too_large{10334, 17420, 17419};

// Not thread-safe. After an Error, unless server_error() says that the server answered, the connection is dropped.
class Connection {
 public:
  // `clock` must outlive it. Connects at the first request.
  Connection(ConnectionSpec spec, const Clock& clock) : m_spec(std::move(spec)), m_clock(&clock) {}
  ~Connection() { drop(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Asks the server for its time and its role, and refuses a server that cannot keep locks.
  Result<ServerFacts> hello(const CallLimits& limit);
  // The same without the refusal.
  Result<ServerFacts> facts(const CallLimits& limit);
  // Runs one command on the database of the URL, or on `database`.
  //   unreachable       no answer by the deadline, no server, connection lost, the commit is not confirmed: it may have happened
  //   refused           wrong password, or a missing right
  //   server_not_ready  no primary, shutting down, too old
  //   config            the URL names no such thing
  Result<Answer> ask(const Document& command, const CallLimits& limit);
  Result<Answer> ask(const std::string& database, const Document& command, const CallLimits& limit);
  // Sends a command without waiting for its answer, and drops the connection.
  void tell(const Document& command);
  [[nodiscard]] const ServerError& server_error() const { return m_server_error; }  // of the last Error of ask

  // The connection itself, for a caller who speaks on it without libmongoc, and from then on makes no request here but drop(). Valid
  // until that. nullptr: not connected.
  [[nodiscard]] const OpenStream* stream() const;

  void drop();
  [[nodiscard]] const ConnectionSpec& spec() const { return m_spec; }
  [[nodiscard]] const std::string& where() const { return m_spec.url; }
  [[nodiscard]] const Clock& clock() const { return *m_clock; }

 private:
  Result<ServerFacts> connect(const CallLimits& limit);
  Result<Answer> run(const std::string& database, const Document& command);
  Error lost(const bson_error_t& why);
  Error refused(const ServerError& error);

  ConnectionSpec m_spec;
  const Clock* m_clock;
  StreamContext m_context;
  mongoc_client_t* m_client = nullptr;
  std::uint32_t m_server = 0;  // its number in libmongoc
  std::string m_server_name;   // "host:port"
  ServerError m_server_error;
};

}  // namespace rlock::mongo
