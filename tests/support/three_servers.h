// SPDX-License-Identifier: Apache-2.0
// Three Redis servers that are a quorum.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <deque>

namespace rlock::test {

struct ThreeServers {
  explicit ThreeServers(const RedisOptions& options = {})
  {
    for (int i = 0; i < 3; ++i) {
      servers.emplace_back(options);
    }
  }
  ThreeServers(const ThreeServers&) = delete;
  ThreeServers& operator=(const ThreeServers&) = delete;

  // VERB OPTIONS -S … REST, for the call VERB REST.
  [[nodiscard]] Words words(Words call, Words options) const
  {
    for (const RedisServer& server : servers) {
      options.insert(options.end(), {"-S", server.url()});
    }
    call.insert(call.begin() + 1, options.begin(), options.end());
    return call;
  }

  std::deque<RedisServer> servers;
};

// The second one hangs.
struct OneOfThreeHangs : ThreeServers {
  explicit OneOfThreeHangs(const RedisOptions& options = {}) : ThreeServers(options) { servers[1].stop_signal(); }
  ~OneOfThreeHangs() { servers[1].cont(); }
  OneOfThreeHangs(const OneOfThreeHangs&) = delete;
  OneOfThreeHangs& operator=(const OneOfThreeHangs&) = delete;
};

}  // namespace rlock::test
