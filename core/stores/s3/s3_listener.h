// SPDX-License-Identifier: Apache-2.0
// Waits for messages to a listener by reading the objects of its locks again and again: a bucket wakes no client. Private to stores/s3.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "engine/looking_source.h"
#include "stores/s3/s3_access.h"

namespace rlock::s3 {

// How long a listener waits until it looks again. `is_alone`: no other client listens to the lock. A pure function.
Millis pause_between_looks(bool is_alone);

class PollingSource final : public record::LookingSource {
 public:
  PollingSource(const ConnectionSpec& spec, const Clock& clock, std::unique_ptr<Rng> rng);

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override;

 private:
  struct Lock {
    std::vector<std::string> channels;
    std::string etag;             // of the object as it was seen last
    std::set<std::string> known;  // the messages that were there then
    bool is_seeded = false;
    bool is_registered = false;  // the object names this listener, and its `seen` is young
    bool is_alone = true;
  };

  Result<Done> enter(const std::string& name, Lock& lock, const CallLimits& limit);
  void take(Lock& lock, const SeenObject& seen);
  Result<Done> read(const CallLimits& limit);
  Result<Millis> look(const CallLimits& limit) override;
  [[nodiscard]] Millis pause_until_look() const;

  Connection m_connection;
  std::unique_ptr<Rng> m_rng;
  std::string m_id;
  std::map<std::string, Lock> m_locks;
  Instant m_next_beat;
};

}  // namespace rlock::s3
