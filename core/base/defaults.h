// SPDX-License-Identifier: Apache-2.0
// The default times, and the times on which several modules or Lua and C++ agree. Each is defined only here. Help, the
// doctor and the tests name these constants; the scripts get them from the build.
//
// lua/CMakeLists.txt reads this file line by line. So each constant stands on one line:
// `inline constexpr TYPE name{digits};  // meaning`. A `Millis` counts milliseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include "base/clock.h"
#include "base/stop.h"

namespace rlock {

// Defaults of options.
inline constexpr Millis default_ttl{30000};            // --ttl: how long a lock outlives a holder that died
inline constexpr Millis default_kill_after{5000};      // --kill-after: from the stop signal to KILL
inline constexpr Millis default_server_timeout{5000};  // --server-timeout, with one server
inline constexpr Millis default_quorum_timeout{500};   // --server-timeout, with several servers
inline constexpr Millis default_history{3600000};      // --history; every repeated release comes earlier
inline constexpr Millis default_force_grace{10000};    // force-unlock --grace: how long the holder may be silent
inline constexpr Millis default_bench_time{1000};      // bench --for

inline constexpr Millis default_local_idle{
    600000};  // RLOCK_LOCAL_IDLE: a private server ends when it is not used for so long

// Leases.
inline constexpr int renewals_per_ttl{3};             // renewals within one ttl, one every renewal_period(ttl)
inline constexpr Millis longest_check_period{10000};  // the longest time between two checks of a fixed lease
inline constexpr Millis fence_memory{2592000000};     // 30 days: an unused fencing number is kept; the longest ttl

// Waiting.
inline constexpr Millis handover_confirmation{2000};                 // the time in which a waiter confirms a hand-over
inline constexpr Millis look_again_after{10000};                     // the longest time between two looks of a waiter
inline constexpr std::chrono::microseconds subscribe_grace{250000};  // a waiter that came since then may not listen yet
inline constexpr std::chrono::microseconds silence_memory{10000000};  // after a hand-over that was not taken

// The event log.
inline constexpr int event_count{128};  // the entries that it has, about

// How much time passes between two renewals of a lease of `ttl`.
constexpr Millis renewal_period(Millis ttl) { return ttl / renewals_per_ttl; }

// How long a call may take.

// The call ends by `deadline`, and soon after `stop` is requested.
struct CallLimits {
  Instant deadline;
  StopToken stop;
  std::optional<Instant> since = {};  // when the call began of which this one is a part; errors tell the whole time
};

// The part of the time that is left for the next of `untried` servers, so that one that is off leaves time for the others.
inline CallLimits share_of(const CallLimits& limit, Instant now, std::size_t untried)
{
  return {.deadline = now + (limit.deadline - now) / static_cast<std::int64_t>(untried), .stop = limit.stop};
}

// The limits of a call that makes any number of requests: `timeout` bounds each answer, and `whole` bounds the call.
struct PerAnswer {
  const Clock& clock;
  Millis timeout;
  CallLimits whole;
  // The limits of the next request.
  [[nodiscard]] CallLimits next() const
  {
    return {.deadline = std::min(clock.now() + timeout, whole.deadline), .stop = whole.stop};
  }
};

}  // namespace rlock
