// SPDX-License-Identifier: Apache-2.0
// Receives the message of a sentinel that another server has become the master. The message may come late or never. Private to
// server.
#pragma once

#include "net/connection.h"

#include <atomic>
#include <memory>
#include <string>

namespace rlock {

// Not thread-safe except for `moved`; may move between threads.
class MasterWatch {
 public:
  // After the return, the watch receives the message about each master of that name that is not at `now`, and sets `moved`.
  static Result<MasterWatch> open(Connection sentinel, const std::string& name, const HostPort& now,
                                  std::shared_ptr<std::atomic<bool>> moved, const CallLimits& limit);

  // Reads the messages that have arrived, without waiting. Useless after an Error.
  Result<bool> has_moved();

  [[nodiscard]] int fd() const { return m_sentinel.fd(); }  // readable: call has_moved()

 private:
  MasterWatch(Connection sentinel, std::string prefix, std::string now, std::shared_ptr<std::atomic<bool>> moved);
  [[nodiscard]] bool announces_other_master(const Reply& message) const;

  Connection m_sentinel;
  std::string m_prefix;  // how messages about this master begin: its name and a blank
  std::string m_now;     // how a message about the present master ends
  std::shared_ptr<std::atomic<bool>> m_moved;
};

}  // namespace rlock
