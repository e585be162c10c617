// SPDX-License-Identifier: Apache-2.0
// The lines on stderr while rlock retries a server that cannot be reached: a line at the first failure, and a line when the
// server answers again. Not thread-safe.
#pragma once

#include "base/log.h"
#include "lock/waiting.h"

#include <optional>

namespace rlock {

class ServerLine final : public ServerObserver {
 public:
  // `clock` and `log` must outlive the object.
  ServerLine(const Clock& clock, const Log& log) : m_clock(clock), m_log(log) {}

  // Notes that the server has answered before. From now on a failure that is over within a second causes no line.
  void was_there() { m_was_there = true; }
  void server_failed(const Error& error) override;
  void server_answered() override;

 private:
  const Clock& m_clock;
  const Log& m_log;
  bool m_was_there = false;
  std::optional<Instant> m_failing_since;
  bool m_told = false;
};

}  // namespace rlock
