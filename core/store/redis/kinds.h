// SPDX-License-Identifier: Apache-2.0
// The requests to a Redis server for each kind of lock: a row of scripts and names for each alternative of Mode.
#pragma once

#include "lock/mode.h"
#include "server/script.h"

#include <string>
#include <string_view>

namespace rlock {

struct KindScripts {
  const Script& acquire;
  const Script& renew;
  const Script& release;
  const Script& inspect;
  const Script& force;
  const Script& raise;
  const Script& skip;
};

struct RedisKind {
  const KindScripts& scripts;
  std::string_view requested_mode;   // an argument of the scripts; for permits, their number replaces it
  std::string_view queue_suffix;     // in the names of the queue's keys, because each kind has its own queue
  std::string_view release_channel;  // the prefix of the channel of releases; empty: no client announces a release
};
const RedisKind& redis_kind(const Mode& mode);
inline const KindScripts& scripts_of(const Mode& mode) { return redis_kind(mode).scripts; }

// The argument of the scripts that tells the modes of a kind apart: "", "read", "write", or the number of permits.
std::string requested_mode(const Mode& mode);

}  // namespace rlock
