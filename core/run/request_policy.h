// SPDX-License-Identifier: Apache-2.0
// What `rlock run` and `rlock acquire` derive from their options in the same way.
#pragma once

#include "base/defaults.h"
#include "base/text.h"
#include "lock/abilities.h"
#include "lock/store.h"
#include "lock/waiting.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace rlock {

// The name for messages: "stock", "stock (5 shards)". `shards`: 0: the lock has none.
inline std::string display_name(const LockName& name, std::size_t shards)
{
  return printable(name.text()) + (shards == 0 ? "" : " (" + std::to_string(shards) + " shards)");
}

// `wait`: nullopt: without end; zero: one attempt. `wait_server`: how long to retry a server that cannot be reached. Both times
// begin now.
inline WaitPolicy wait_policy(std::optional<Millis> wait, Millis server_timeout, const Clock& clock,
                              Millis wait_server = Millis{0})
{
  const Instant now = clock.now();
  return {.until = wait ? std::optional{now + *wait} : std::nullopt,
          .waits = !wait || *wait > Millis{0},
          .server_timeout = server_timeout,
          .server_until = wait_server > Millis{0} ? std::optional{now + wait_server} : std::nullopt};
}

// How long --sync waits for the replicas. The job must start with most of its lease left, and WAIT must answer before
// the connection times out.
inline Sync sync_of(unsigned replicas, Millis ttl, Millis server_timeout)
{
  return {.replicas = replicas, .within = std::min(server_timeout / 2, ttl / 4)};
}

// The time limit of note_skipped(), whose failure does not change how rlock ends.
inline constexpr Millis time_to_note_skip{500};

// Records in the history of the lock that a run did not begin, if the engine has a history.
inline void note_skipped(LockStore& store, const LockSpec& spec, const Owner& owner, const SkippedRun& run,
                         const CallLimits& limit)
{
  if (RunHistory* const history = store.run_history()) {
    [[maybe_unused]] const auto noted = history->note_skipped(spec, owner, run, limit);
  }
}

}  // namespace rlock
