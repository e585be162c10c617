// SPDX-License-Identifier: Apache-2.0
// A connection on which a command is sent without waiting for its answer, which libmongoc cannot do. libmongoc connects and logs
// in; then rlock itself speaks MongoDB's protocol (OP_MSG). Private to store/mongo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include "store/mongo/mongo_connection.h"

namespace rlock::mongo {

// The message that has a command, and the number by which its answer names it.
std::string message_of(std::uint32_t number, const Document& command);

// What the first bytes that came are.
struct Received {
  enum class Kind { part, answer, nonsense };
  Kind kind = Kind::part;
  std::string document = {};  // of an answer
  std::size_t size = 0;       // of its message
};
// An answer to the command of that number. A pure function.
Received received_in(std::string_view bytes, std::uint32_t number);

constexpr std::size_t longest_answer = 1 << 20;  // a server that sends more is not understood

// One command at a time. Not thread-safe. After an Error the connection is dropped.
class DirectConnection {
 public:
  // `clock` must outlive it.
  DirectConnection(const ConnectionSpec& spec, const Clock& clock) : m_connection(spec, clock) {}

  // Connects and logs in, within the limit. Errors as Connection::hello.
  Result<Done> connect(const CallLimits& limit);
  // Sends a command on the database of the URL.
  Result<Done> send(Document command);
  // nullopt: its answer has not arrived. An answer may be a refusal.
  Result<std::optional<Answer>> receive();

  [[nodiscard]] int fd() const;  // readable: receive() may have an answer. -1: not connected
  void drop();
  [[nodiscard]] const ConnectionSpec& spec() const { return m_connection.spec(); }

 private:
  Error lost();

  Connection m_connection;
  std::uint32_t m_number = 0;  // of the last command
  std::string m_bytes;         // that came and are no whole answer yet
};

}  // namespace rlock::mongo
