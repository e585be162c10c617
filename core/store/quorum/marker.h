// SPDX-License-Identifier: Apache-2.0
// Tells the markers of the servers about the ttls of locks (lock/data_age.h). Private to QuorumStore.
#pragma once

#include "store/quorum/server_worker.h"

#include <utility>

namespace rlock {

// After this time the store tells a marker the same ttl again, because a marker forgets a ttl that no client uses.
constexpr Millis told_for = std::chrono::hours{1};

inline void note_told(QuorumServer& server, Millis ttl, const Clock& clock)
{
  server.told_ttl = ttl;
  server.tell_again_at = clock.now() + told_for;
}

// Tells the marker of a server about a grant. `counts`: the grant of this server counts.
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

// Tells the marker of a server about a renewal, and returns the server's `answer` to the renewal. The marker is told at the first
// renewal, when the ttl is longer than the one that it knows, and every `told_for`. Returns an Error if the marker cannot be
// told.
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
