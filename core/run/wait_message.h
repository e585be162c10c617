// SPDX-License-Identifier: Apache-2.0
// What a user reads while a lock or its server is waited for, and when the lock stays busy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include "base/log.h"
#include "lock/waiting.h"

namespace rlock {

// The lines on stderr while rlock retries a server that cannot be reached: a line at the first failure, and a line when the
// server answers again. Not thread-safe.

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

// The messages of a wait on stderr. On a terminal: one line that is kept current. Elsewhere: a line after a second and then a
// line a minute, because silence looks like a hang. Besides: the lines of ServerLine, and, when the time is over, that the lock
// is busy.

// Ownership: `clock` and `log` must outlive the object. Threads: used from the waiting thread.
class WaitMessage : public WaitObserver {
 public:
  // `lock`: the name of the lock for messages.
  WaitMessage(std::string lock, const Clock& clock, const Log& log);
  ~WaitMessage() override;  // erases the line on a terminal
  WaitMessage(const WaitMessage&) = delete;
  WaitMessage& operator=(const WaitMessage&) = delete;

  void refused(const Busy& busy) override;
  [[nodiscard]] Instant due() const override { return m_due; }
  void tick() override;
  void server_failed(const Error& error) override;
  void server_answered() override;

 private:
  [[nodiscard]] std::string line(const std::string& lock) const;
  void show_on_terminal();

  std::string m_lock;
  const Clock& m_clock;
  const Log& m_log;
  const bool m_is_terminal;
  Instant m_due;
  std::optional<Busy> m_busy;
  Instant m_busy_at{};  // the time of m_busy
  ServerLine m_server;
  std::string m_server_error;  // why the server cannot be reached now; empty: it can
  bool m_shown = false;
};

// The waiter's place in the queue, 1 for the next; nullopt: the waiter is in no queue.
std::optional<std::uint64_t> place_of(const Busy& busy);

// "waiting for stock, place 5, held for 3m 12s by alice@web1 (pid 71), ttl 21s, running ./job.sh [label]". The
// important parts come first, because a narrow terminal cuts the line. `age`: the age of `busy`.
std::string wait_text(const std::string& lock, const Busy& busy, std::int64_t now_ms, Millis age);

// "stock is busy after 10s, held by alice@web1 (pid 71)". `waited`: zero: the caller did not wait.
// `left`: the ttl of the lock; nullopt: unknown. `permits`: Busy::permits.
std::string busy_text(const std::string& lock, Millis waited, const std::optional<Holder>& holder,
                      std::optional<Millis> left = std::nullopt, unsigned permits = 0);

// "; 3 callers wait already, and --max-waiting allows no more", which follows busy_text(). `full`: Busy::full.
std::string full_text(std::uint64_t full);

// The newer run that took the place, or who ended the freeze: "alice@web2 (pid 9)"; empty: unknown.
std::string newer_run(const Replaced& replaced);

// "stock: a newer run has taken the place of this one: alice@web2 (pid 9)"; "stock: the freeze was ended by alice@web2 (pid 9)".
std::string replaced_text(const std::string& lock, const Replaced& replaced);

}  // namespace rlock
