// SPDX-License-Identifier: Apache-2.0
// Receives the messages of a lock from the table rlock_message (mysql_backend.h says how). Private to stores/mysql.
//
// The connection of a listener waits in the server, and the sender of a message ends that wait by KILL QUERY. Why no chain of
// GET_LOCK, in which each waiter waits for the named lock of the one before it: a message may be for any listener, not only the
// next one in line; a stopped waiter would block those behind it; and the sender needs no connection of its own. A message is a
// row, so a KILL that is late, lost or forbidden costs time only.
//
// MySQL waits by SLEEP. In MariaDB (10.11, Item_func_sleep::val_int) a KILL at the wrong moment lets all SLEEPs of the server stand
// still for two seconds, because they share a mutex. So one listener of a server has the named lock `gate` and runs SLEEP; the
// others wait for that lock, and one of them gets it when that listener ends.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "engine/script_host.h"
#include "stores/mysql/mysql_connection.h"
#include "stores/mysql/mysql_schema.h"

namespace rlock::mysql {

// SQL that is true where the listener `number` (an expression) lives.
std::string is_alive(const std::string& number);
// Deletes the listeners `l` of the lock for which `condition` is true, with their messages.
std::string delete_listeners_sql(std::string_view lock, const std::string& condition);
// Ends the wait of a listener.
std::string wake_sql(const std::string& listener);

class PollingSource final : public MessageSource {
 public:
  // `clock` must outlive it.
  PollingSource(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

  Result<Done> begin(std::span<const LockChannel> channels, const CallLimits& limit);
  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override;
  Result<std::optional<Message>> next(const CallLimits& limit) override;
  [[nodiscard]] int fd() const override { return m_connection.fd(); }

 private:
  enum class Step { wait, look, tidy };

  std::string registration_sql(std::span<const LockChannel> channels);
  void send();                                    // the statement of the step
  Result<bool> receive(const CallLimits& limit);  // ends the step; false: no answer by the deadline
  Result<Done> take_answers();                    // those that are there
  void take(Rows& rows);
  [[nodiscard]] bool waits_at_gate() const;

  ConnectionSpec m_spec;
  const Clock& m_clock;
  Tables m_tables;
  Connection m_connection;
  std::unique_ptr<Rng> m_rng;
  std::string m_number;  // of this listener
  Step m_step = Step::wait;
  int m_wait_ms;
  int m_longest_wait_ms;
  bool m_has_gate = false;
  bool m_has_run_out = false;        // the last wait ended by its time alone: no KILL QUERY has come, and no gate
  std::vector<std::string> m_taken;  // rows of the last look, which are heard
  std::deque<Message> m_heard;
};

}  // namespace rlock::mysql
