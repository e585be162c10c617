// SPDX-License-Identifier: Apache-2.0
// Receives the messages of a store that wakes no client by looking at the store again and again. A store says how it looks, and how
// long the pause until the next look is.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include "base/clock.h"
#include "base/reply.h"
#include "base/result.h"
#include "base/stop.h"
#include "engine/script_host.h"

namespace rlock::record {

// Threads and errors: as MessageSource. It asks the store only within add() and next().
class LookingSource : public MessageSource {
 public:
  explicit LookingSource(const Clock& clock) : m_clock(clock) {}  // which must outlive it

  // Looks when it is time to, also where the deadline has passed.
  Result<std::optional<Message>> next(const CallLimits& limit) final;
  // Readable while a message is there, and when it is time to look.
  [[nodiscard]] int fd() const final { return m_alarm.fd(); }

 protected:
  // Gives what has come to hear(), and returns the pause until the next look. `limit` is that of next(): a look may take longer.
  virtual Result<Millis> look(const CallLimits& limit) = 0;
  void look_after(Millis pause);  // add() calls this as well
  void hear(Message message) { m_heard.push_back(std::move(message)); }
  [[nodiscard]] bool has_messages() const { return !m_heard.empty(); }
  [[nodiscard]] const Clock& clock() const { return m_clock; }

 private:
  void set_alarm();

  const Clock& m_clock;
  std::deque<Message> m_heard;
  Instant m_next_look{};
  Alarm m_alarm;
};

}  // namespace rlock::record
