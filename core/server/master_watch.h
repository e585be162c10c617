// SPDX-License-Identifier: Apache-2.0
// Hears from a sentinel that another server has become the master. A hint: it may come late or never. Private to wire.
#pragma once

#include "net/connection.h"

#include <atomic>
#include <memory>
#include <string>

namespace rlock {

// Not thread-safe, but for the flag; may move between threads.
class MasterWatch {
 public:
  // From when this returns, any other master of that name than the one at `now` is heard of. `moved` is set then.
  static Result<MasterWatch> open(Connection sentinel, const std::string& name, const HostPort& now,
                                  std::shared_ptr<std::atomic<bool>> moved, const CallLimits& limit);

  // Takes what has arrived, without waiting. After an Error: drop it.
  Result<bool> has_moved();

  [[nodiscard]] int fd() const { return m_sentinel.fd(); }  // readable: has_moved()

 private:
  MasterWatch(Connection sentinel, std::string prefix, std::string now, std::shared_ptr<std::atomic<bool>> moved);
  [[nodiscard]] bool says_so(const Reply& message) const;

  Connection m_sentinel;
  std::string m_prefix;  // of the messages that concern us: the name and a blank
  std::string m_now;     // and how those end that are no news
  std::shared_ptr<std::atomic<bool>> m_moved;
};

}  // namespace rlock
