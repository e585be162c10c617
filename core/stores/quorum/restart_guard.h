// SPDX-License-Identifier: Apache-2.0
// The restart guard: decides whether the grant of a server counts, because the server may have lost its data and forgotten a
// lock. Pure functions. quorum_store.h says what the guard protects from.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include "lock/store.h"
#include "stores/quorum/quorum.h"
#include "stores/quorum/server_worker.h"

namespace rlock {

// The answer of a server to a request for a lock.
struct Vote {
  std::string shown;  // the server, for people
  Attempt attempt;
  std::optional<DataAge> data;  // nullopt: the server has no marker
};

// The longest ttl that any of the servers knows, at least `ttl`.
Millis longest_ttl(const Answers<Vote>& votes, Millis ttl);

// How old the data of a server must be, so that all locks that the server may have forgotten are over. `guard`: the age that the
// user wants; nullopt: the longest ttl in use.
Millis needed_age(const Answers<Vote>& votes, Millis ttl, std::optional<Millis> guard);

// The votes that further votes cannot change. The grant of a server that has not counted yet is left out until all
// servers have answered, because a silent server may know a longer ttl.
Answers<Vote> settled_votes(const Answers<Vote>& so_far);

// The attempts; the grant of a server that is too young is an Error.
Answers<Attempt> counted_attempts(const Answers<Vote>& votes, Millis needed_age);

// The servers whose grants count, as Vote::shown.
std::set<std::string> counting_servers(const Answers<Vote>& votes, Millis needed_age);

// How long until the data of `more` further servers is old enough; nullopt: fewer servers are too young.
std::optional<Millis> old_enough_in(const Answers<Vote>& votes, Millis needed_age, std::size_t more);

// Tells the markers of the servers about the ttls of locks (lock/marker.h). Private to QuorumStore.

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
  RETURN_IF_ERROR(server.marker({.ttl = ttl, .counts_since = counts ? server.has_data_since : 0}, limit));
  note_told(server, ttl, clock);
  return Done{};
}

// The lease in an answer; nullptr: none.
inline const LeaseTerm* lease_in(const Attempt& attempt)
{
  const auto* granted = std::get_if<Granted>(&attempt);
  return granted != nullptr ? &granted->lease : nullptr;
}
inline const LeaseTerm* lease_in(const ReentryResult& entry)
{
  const auto* granted = std::get_if<Granted>(&entry);
  return granted != nullptr ? &granted->lease : nullptr;
}
inline const LeaseTerm* lease_in(const Renewal& renewal)
{
  const auto* renewed = std::get_if<Renewed>(&renewal);
  return renewed != nullptr && renewed->lease ? &*renewed->lease : nullptr;
}

// Tells the marker of a server about the lease in the server's `answer` to a renewal or a re-entry, and returns the answer. The
// marker is told at the first renewal, when the lease is longer than the longest that it knows, and every `told_for`. Returns an
// Error if the marker cannot be told. A check gives no lease.
template <typename T>
Result<T> with_told_lease(Result<T> answer, QuorumServer& server, const Clock& clock, const CallLimits& limit)
{
  const LeaseTerm* const lease = answer && server.marker ? lease_in(*answer) : nullptr;
  if (lease == nullptr || (lease->length <= server.told_ttl && clock.now() < server.tell_again_at)) {
    return answer;
  }
  RETURN_IF_ERROR(server.marker({.ttl = lease->length}, limit));
  note_told(server, lease->length, clock);
  return answer;
}

}  // namespace rlock
