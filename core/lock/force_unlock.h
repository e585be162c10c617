// SPDX-License-Identifier: Apache-2.0
// How a server takes a lock from its holder: the steps of `rlock force-unlock`. Optional for an engine.
#pragma once

#include "base/call_limits.h"
#include "base/result.h"
#include "lock/lock_state.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace rlock {

enum class ForceStep {
  ask,   // tell the owner that the lock is wanted
  join,  // the same, unless the owner has got a request of another client already
  look,  // change nothing
  revoke,  // refuse the owner's renewals from now on: its hold ends with its ttl. Repeat this step, because a server may lose data
  take,  // delete the hold at once
};
// The name of the step in the scripts.
constexpr std::string_view name_of(ForceStep step)
{
  constexpr std::array<std::string_view, 5> names{"ask", "join", "look", "revoke", "take"};
  return names[static_cast<std::size_t>(step)];
}
struct ForceCall {
  LockName name;
  Mode mode;
  Owner owner;        // the holder
  std::string by;     // the operator, for people
  Millis stands_for;  // the server remembers the request at least so long
};
struct ForceHeld {  // the owner holds the lock
  Holder holder;
  std::int64_t listening = 0;                  // number of subscribers that got the request
  std::optional<Millis> lasts = std::nullopt;  // time until the hold expires; nullopt: never
  std::optional<Millis> silent_for =
      std::nullopt;       // time since the owner last reported that it stops its job; nullopt: never
  bool is_rlock = false;  // the owner is an rlock, whose renewals the server can refuse
};
struct ForceBroken {  // the hold was deleted
  Holder holder;
  bool job_was_over = false;  // only --min-hold still kept the lock
};
struct ForceFree {};   // the lock has no holder
struct ForceChanged {  // another owner holds the lock
  Holder holder;
};
using ForceAnswer = std::variant<ForceHeld, ForceBroken, ForceFree, ForceChanged>;

class ForceUnlock {
 public:
  virtual ~ForceUnlock() = default;
  // Carries out one step. Each step also deletes a hold that only --min-hold keeps. May be sent again.
  virtual Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) = 0;
};

}  // namespace rlock
