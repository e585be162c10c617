// SPDX-License-Identifier: Apache-2.0
// The names of a lock and of its owner, as types that cannot be swapped.
#pragma once

#include "base/clock.h"
#include "base/result.h"

#include <string>
#include <string_view>

namespace rlock {

// The prefixes of the keys that lie beside a lock: rlock's keys, and the fencing number, which Redisson has too. The grant and
// the release of a lock write and delete these keys.
inline constexpr std::string_view own_key_prefix = "rlock:";
inline constexpr std::string_view fence_key_prefix = "redisson_lock_token:";

// A lock's name: the Redis key itself, byte for byte, prefix included.
class LockName {
 public:
  // Errors: usage (empty, too long, control characters), config (braces that would put the lock and its bookkeeping into
  // two slots of a cluster, so that the lock could be acquired but not released).
  static Result<LockName> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return m_text; }
  friend auto operator<=>(const LockName&, const LockName&) = default;  // NOLINT(modernize-use-nullptr): false alarm

 private:
  explicit LockName(std::string text) : m_text(std::move(text)) {}
  std::string m_text;
};

// Checks the name of a lock before it is taken. ErrorCode::config: the name begins like a key that lies beside a lock, so another
// lock would delete this lock. A caller may still inspect and release such a lock of a foreign client.
Result<Done> check_can_be_taken(const LockName& name);

// Identifies one acquisition to the server. An owner is never used for a second acquisition; nested holds share the owner.
class Owner {
 public:
  static Owner fresh(Rng& rng, int pid);  // "<uuid>:<pid>", as Redisson's dashboards split it
  static Owner of(std::string text) { return Owner(std::move(text)); }  // `text`: from a server or a token

  [[nodiscard]] const std::string& text() const { return m_text; }
  friend bool operator==(const Owner&, const Owner&) = default;

 private:
  explicit Owner(std::string text) : m_text(std::move(text)) {}
  std::string m_text;
};

// One hold of an owner. The id of the outermost hold is the owner's; a nested hold has another id, so that a request that is
// sent twice counts once.
struct Hold {
  Hold(Owner outermost) : owner(std::move(outermost)), id(owner.text()) {}  // NOLINT(*-explicit-*)
  static Hold nested_in(Owner ancestor, Rng& rng, int pid);
  static Hold of_token(std::string_view token);

  // RLOCK_TOKEN: "OWNER", for a nested hold "OWNER/ID".
  [[nodiscard]] std::string token() const { return is_nested() ? owner.text() + "/" + id : owner.text(); }
  [[nodiscard]] bool is_nested() const { return id != owner.text(); }

  Owner owner;
  std::string id;
};

}  // namespace rlock
