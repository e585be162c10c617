// SPDX-License-Identifier: Apache-2.0
// The story of `rlock force-unlock`: tell the holder, give it time, take the lock away.
#pragma once

#include "lock/store.h"

#include <optional>
#include <string>
#include <variant>

namespace rlock {

struct ForceOrder {
  LockName name;
  Mode mode;
  Owner owner;        // who is meant: the holder that the operator saw
  std::string by;     // who wants it, for the holder and the record: "alice@web1 (pid 71)"
  Millis grace;       // how long the holder has to let go; zero: none
  Millis server_timeout;
};

struct LetGo { Holder holder; };   // the holder stopped its job and released
struct Broken { Holder holder; };  // it did not listen or answer, and was deprived
using ForceEnd = std::variant<LetGo, Broken, ForceFree, ForceChanged>;

Result<ForceEnd> force_unlock(LockStore& store, const ForceOrder& order, const Clock& clock, Stop stop);

}  // namespace rlock
