// SPDX-License-Identifier: Apache-2.0
// Waits for messages to a listener by reading the documents of its locks again and again. Private to stores/mongo.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "engine/looking_source.h"
#include "stores/mongo/mongo_connection.h"
#include "stores/mongo/mongo_pauses.h"

namespace rlock::mongo {

// A command that writes, with the write concern of a commit: on a majority of the replica set, and in its journals.
Document write_command(const char* command, const Connection& connection, const char* list,
                       const std::vector<Document>& statements, const CallLimits& limit);

// The document of that name is not what rlock expects in its collection.
Error unfit_document(const Connection& connection, std::string_view name);

class PollingSource final : public record::LookingSource {
 public:
  PollingSource(const ConnectionSpec& spec, const Clock& clock, std::unique_ptr<Rng> rng);
  ~PollingSource() override;
  PollingSource(const PollingSource&) = delete;
  PollingSource& operator=(const PollingSource&) = delete;

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override;

 private:
  struct Lock {
    std::vector<std::string> channels;
    std::set<std::int64_t> known;  // the messages that were there at the last look
    bool is_seeded = false;
  };

  Result<Done> register_at(const std::vector<std::string>& names, const CallLimits& limit);
  Result<Done> read(const CallLimits& limit);
  [[nodiscard]] std::optional<ListenerPlace> place_in(const Fields& document) const;
  bool take_messages(Lock& lock, const Fields& document);
  Result<Done> beat(const CallLimits& limit);
  Result<Millis> look(const CallLimits& limit) override;
  [[nodiscard]] Millis pause_until_look() const;

  Connection m_connection;
  std::unique_ptr<Rng> m_rng;
  std::string m_path;  // "listeners.ID"
  std::map<std::string, Lock> m_locks;
  std::vector<std::string> m_unregistered;  // locks whose documents do not name this listener any more
  ListenerPlace m_place;
  Millis m_look_time{0};
  std::int64_t m_ahead_ms = 0;  // the server's clock less clock(), when this listener was registered
  Instant m_next_beat;
  Instant m_quiet_since;
};

}  // namespace rlock::mongo
