// SPDX-License-Identifier: Apache-2.0
// The restart guard: decides whether the grant of a server counts, because the server may have lost its data and forgotten a
// lock. Pure functions. quorum_store.h says what the guard protects from.
#pragma once

#include "lock/data_age.h"
#include "lock/store.h"
#include "store/quorum/answers.h"

#include <cstddef>
#include <optional>
#include <set>
#include <string>

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

}  // namespace rlock
