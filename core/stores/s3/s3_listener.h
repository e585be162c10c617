// SPDX-License-Identifier: Apache-2.0
// Waits for messages to a listener by reading the objects of its locks again and again: a bucket wakes no client. Private to stores/s3.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "base/fd.h"
#include "engine/script_host.h"
#include "stores/s3/s3_access.h"

namespace rlock::s3 {

// How long a listener waits until it looks again. `is_alone`: no other client listens to the lock. A pure function.
Millis pause_between_looks(bool is_alone);

class PollingSource final : public MessageSource {
 public:
  PollingSource(const ConnectionSpec& spec, const Clock& clock, std::unique_ptr<Rng> rng);

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override;
  Result<std::optional<Message>> next(const CallLimits& limit) override;
  [[nodiscard]] int fd() const override { return m_timer.get(); }

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
  Result<Done> look(const CallLimits& limit);
  Result<Done> poll(const CallLimits& limit);
  void set_timer();

  Connection m_connection;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  std::string m_id;
  std::map<std::string, Lock> m_locks;
  std::deque<Message> m_heard;
  Fd m_timer;
  Instant m_next_look;
  Instant m_next_beat;
};

}  // namespace rlock::s3
