// SPDX-License-Identifier: Apache-2.0
// A change stream of the documents of some locks, on a connection of its own: it tells a listener when to look. A change that is
// told twice or not at all harms nothing, because the listener also looks now and then without being told. Private to store/mongo.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "store/mongo/mongo_direct.h"

namespace rlock::mongo {

// The channels of a listener, by the names of its locks.
using ChannelsByLock = std::map<std::string, std::vector<std::string>>;

// The command that opens a stream of the changes that bring a message to one of these channels, or make or delete a document. Other
// changes are not told: each listener of a lock changes its document every listener_beat.
Document change_stream_command(const std::string& collection, const ChannelsByLock& locks);

// Not thread-safe. It reports no error: a stream that fails, or is refused, is closed, and after a pause open() opens another one.
class ChangeStream {
 public:
  // `clock` must outlive it.
  ChangeStream(const ConnectionSpec& spec, const Clock& clock) : m_connection(spec, clock), m_clock(clock) {}

  // Opens a stream, unless it is open or one has failed lately. Waits for the connection, within the limit, but not for the stream.
  void open(const ChannelsByLock& locks, const CallLimits& limit);
  void close();
  [[nodiscard]] bool is_open() const { return m_state != State::closed; }
  // Whether it tells of each change, as far as can be known.
  [[nodiscard]] bool is_reporting() const { return m_state == State::reporting; }
  [[nodiscard]] int fd() const { return m_connection.fd(); }  // readable: call has_news(). -1: it is closed

  // Takes what has come, without waiting. True: look at the documents, because one of them has changed, or the stream has begun or
  // ended.
  bool has_news();
  // To be called after each look that has_news() did not ask for. Closes the stream if the server is silent for too long, or if it
  // still has not told of the message that such a look found before.
  enum class Found { nothing, message };
  void looked(Found found);

 private:
  enum class State { closed, opening, reporting };

  bool take(const Fields& answer);
  void await_changes();
  void close_for(Millis pause);

  DirectConnection m_connection;
  const Clock& m_clock;
  State m_state = State::closed;
  std::int64_t m_cursor = 0;
  Instant m_asked_at;
  int m_early_answers = 0;     // without a change, since the last one that came after a wait
  bool m_owes_change = false;  // a look found a message of which the stream has not told
  Instant m_next_opening;
};

}  // namespace rlock::mongo
