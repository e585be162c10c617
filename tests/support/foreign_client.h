// SPDX-License-Identifier: Apache-2.0
// A client that waits for the lock as a Redisson JVM does: try, subscribe to the lock's channel, try again a few
// milliseconds after "0", sleep no longer than the ttl.
#pragma once

#include "redis/connection.h"
#include "redis/subscription.h"

#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

class ForeignClient {
 public:
  ForeignClient(const std::string& url, std::string key, std::string owner);

  // Tries once; nullopt: the client has the lock; else the lock's ttl.
  std::optional<Millis> try_lock();
  // Waits until the client has the lock; false: the time is over.
  bool lock(Instant until, Millis reaction = Millis{2});
  void unlock();
  void force_unlock();

 private:
  Reply call(const std::vector<std::string>& words);

  BootClock m_clock;
  Endpoint m_endpoint;
  std::string m_key;
  std::string m_channel;
  std::string m_owner;
  std::optional<Connection> m_connection;
};

}  // namespace rlock::test
