// SPDX-License-Identifier: Apache-2.0
// The messages to a client that listens. They come by NOTIFY, over the connection that the requests use as well. Behind a pooler
// that keeps them away, the client polls a row of its own. Private to stores/postgres.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include "engine/script_host.h"
#include "stores/postgres/postgres_connection.h"
#include "stores/postgres/postgres_schema.h"

namespace rlock::postgres {

// A channel of PostgreSQL has at most 63 bytes, so its name is a hash, and the message begins with the channel.
std::string notify_channel(std::string_view channel);

// "\x6b": the text form of bytea.
std::string bytea_of(std::string_view bytes);

// Whether a message of `sender` to the channel, which is one of PostgreSQL, arrives `within` that time at `listener`, which listens
// to it.
bool hears(Connection& listener, Connection& sender, const std::string& channel, Millis within, const Clock& clock,
           const CallLimits& limit);

// Threads: as Connection; what it opens must be used by the thread that uses the connection.
class ListenerFactory {
 public:
  // `spec` must outlive it. `clock` must also outlive what it opens.
  ListenerFactory(std::shared_ptr<Connection> connection, const ConnectionSpec& spec, Tables tables, const Clock& clock)
      : m_connection(std::move(connection)), m_spec(spec), m_tables(std::move(tables)), m_clock(clock)
  {
  }

  // Backend::listen.
  Result<std::unique_ptr<MessageSource>> open(std::span<const LockChannel> channels, const CallLimits& limit);

 private:
  [[nodiscard]] bool is_delivered(const std::string& channel, const CallLimits& limit) const;

  std::shared_ptr<Connection> m_connection;
  const ConnectionSpec& m_spec;
  const Tables m_tables;
  const Clock& m_clock;
  bool m_must_poll = false;     // a pooler keeps messages away
  bool m_knows_pooler = false;  // whether one does was found out
};

}  // namespace rlock::postgres
