// SPDX-License-Identifier: Apache-2.0
// What QuorumStore tells the markers of its servers about locks (lock/data_age.h). Private to QuorumStore.
#pragma once

#include "store/quorum/server_worker.h"

#include <utility>

namespace rlock {

// After this time a marker is told the same ttl again, because it forgets a ttl that is not used.
constexpr Millis told_for = std::chrono::hours{1};

inline void note_told(QuorumServer& server, Millis ttl, const Clock& clock)
{
  server.told_ttl = ttl;
  server.tell_again_at = clock.now() + told_for;
}

// After a grant; `counts`: the grant of this server counted.
inline Result<Done> tell_grant(QuorumServer& server, Millis ttl, bool counts, const Clock& clock,
                               const CallLimits& limit)
{
  if (!server.marker) {
    return Done{};
  }
  const auto told = server.marker({.ttl = ttl, .counts_since = counts ? server.has_data_since : 0}, limit);
  if (!told) {
    return told.error();
  }
  note_told(server, ttl, clock);
  return Done{};
}

// After a renewal, of which `answer` is the server's: tells the marker at the first one, when the ttl is longer than
// the one told, and every `told_for`. The answer counts only once the marker is told.
template <typename T>
Result<T> with_told_ttl(Result<T> answer, QuorumServer& server, Millis ttl, const Clock& clock, const CallLimits& limit)
{
  const bool is_told = !server.marker || (ttl <= server.told_ttl && clock.now() < server.tell_again_at);
  if (!answer || is_told) {
    return answer;
  }
  const auto told = server.marker({.ttl = ttl}, limit);
  if (!told) {
    return told.error();
  }
  note_told(server, ttl, clock);
  return answer;
}

}  // namespace rlock
