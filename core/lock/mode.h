// SPDX-License-Identifier: Apache-2.0
// The kinds of lock, as data: a kind is an alternative here, its file in lua/kinds, and a row in kinds.cpp.
#pragma once

#include <variant>

namespace rlock {

struct Plain {};   // one holder: Redisson's RLock
struct Reader {};  // of a read-write lock: many together
struct Writer {};  // of a read-write lock: alone
struct Permits {
  unsigned limit;
};                     // that many holders at a time: Redisson's RPermitExpirableSemaphore
struct StringLock {};  // one holder, SET KEY owner NX PX, as most clients take a lock
using Mode = std::variant<Plain, Reader, Writer, Permits, StringLock>;

// Whether others may hold it beside us.
inline bool is_shared(const Mode& mode)
{
  return std::holds_alternative<Reader>(mode) || std::holds_alternative<Permits>(mode);
}

}  // namespace rlock
