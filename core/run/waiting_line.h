// SPDX-License-Identifier: Apache-2.0
// What a waiting user sees on stderr: on a terminal one line that is kept current, elsewhere a line after a second
// and one a minute, for silence looks like a hang and chatter like a fault.
#pragma once

#include "base/log.h"
#include "lock/waiting.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rlock {

class WaitingLine : public WaitObserver {
 public:
  // `when_first` is called when we come to the head of the line.
  WaitingLine(std::string lock, const Clock& clock, const Log& log, std::function<void()> when_first);
  ~WaitingLine() override;  // wipes the live line
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;

  void refused(const Busy& busy) override;
  [[nodiscard]] Instant due() const override { return m_due; }
  void tick() override;
  void next_in_line() override { m_when_first(); }

 private:
  [[nodiscard]] std::string line(const std::string& lock) const;

  std::string m_lock;
  const Clock& m_clock;
  const Log& m_log;
  const std::function<void()> m_when_first;
  const bool m_live;
  Instant m_due;
  std::optional<Busy> m_busy;
  Instant m_told_at{};  // when m_busy was true
  bool m_shown = false;
};

// The caller's place in the queue, 1 for the next; nullopt: the caller is in no queue.
std::optional<std::uint64_t> place_of(const Busy& busy);

// "waiting for stock, place 5, held for 3m 12s by alice@web1 (pid 71), ttl 21s, running ./job.sh [label]": a line that is cut
// keeps what is important.
std::string describe_wait(const std::string& lock, const Busy& busy, std::int64_t now_ms, Millis since_told);

}  // namespace rlock
