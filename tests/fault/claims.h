// SPDX-License-Identifier: Apache-2.0
// Which clients think that they hold a lock, by their own clocks and their own valid_until. Two at once are an overlap.
#pragma once

#include "base/clock.h"
#include "base/duration.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace rlock::test {

// Thread-safe.
class Claims {
 public:
  // `client` thinks from now on that it holds the lock until `until`.
  void claim(const std::string& client, Instant until)
  {
    const std::lock_guard guard(m_mutex);
    m_claims[client] = until;
    compare(client, until);
  }

  // Its lease was renewed. Nothing, when it has given the lock up: a watchdog runs a little longer than the job.
  void renew(const std::string& client, Instant until)
  {
    const std::lock_guard guard(m_mutex);
    if (const auto claim = m_claims.find(client); claim != m_claims.end()) {
      claim->second = until;
      compare(client, until);
    }
  }

  void drop(const std::string& client)
  {
    const std::lock_guard guard(m_mutex);
    m_claims.erase(client);
  }

  [[nodiscard]] bool any() const
  {
    const std::lock_guard guard(m_mutex);
    return !m_claims.empty();
  }

  [[nodiscard]] std::vector<std::string> overlaps() const
  {
    const std::lock_guard guard(m_mutex);
    return m_overlaps;
  }

 private:
  void compare(const std::string& client, Instant until)
  {
    const Instant now = m_clock.now();
    for (const auto& [other, end] : m_claims) {
      if (other != client && now < end && now < until) {
        m_overlaps.push_back(client + " and " + other + " hold the lock at the same time; the lease of " + other +
                             " has " + rlock::show(std::chrono::ceil<Millis>(end - now)) + " left");
      }
    }
  }

  BootClock m_clock;
  mutable std::mutex m_mutex;
  std::map<std::string, Instant> m_claims;  // guarded by m_mutex
  std::vector<std::string> m_overlaps;      // guarded by m_mutex
};

}  // namespace rlock::test
