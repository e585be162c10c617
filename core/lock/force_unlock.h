// SPDX-License-Identifier: Apache-2.0
// Taking a lock from its holder: the steps of `rlock force-unlock` that a server carries out. Optional for an engine.
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
  ask,     // tell the owner that the lock is wanted
  join,    // the same, but a request of another client that the owner has got stands
  look,    // change nothing
  revoke,  // refuse the owner's renewals from now on: its hold ends with its ttl. Repeat it: a server may lose the mark
  take,    // delete the hold at once
};
// As the scripts call it.
constexpr std::string_view name_of(ForceStep step)
{
  constexpr std::array<std::string_view, 5> names{"ask", "join", "look", "revoke", "take"};
  return names[static_cast<std::size_t>(step)];
}
struct ForceCall {
  LockName name;
  Mode mode;
  Owner owner;        // of the hold
  std::string by;     // the operator, for people
  Millis stands_for;  // how long the server remembers the request at least
};
struct ForceHeld {  // the owner holds the lock
  Holder holder;
  std::int64_t listening = 0;                  // number of subscribers that got the request
  std::optional<Millis> lasts = std::nullopt;  // until the hold expires; missing: never
  std::optional<Millis> silent_for =
      std::nullopt;       // since the owner last reported that it stops its job; missing: never
  bool is_rlock = false;  // the server can refuse its renewals
};
struct ForceBroken {  // the hold was deleted
  Holder holder;
  bool job_was_over = false;  // only --min-hold kept the lock
};
struct ForceFree {};   // the lock has no holder
struct ForceChanged {  // another owner holds the lock
  Holder holder;
};
using ForceAnswer = std::variant<ForceHeld, ForceBroken, ForceFree, ForceChanged>;

class ForceUnlock {
 public:
  virtual ~ForceUnlock() = default;
  // Each step also deletes a hold that only --min-hold keeps. May be sent again.
  virtual Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) = 0;
};

}  // namespace rlock
