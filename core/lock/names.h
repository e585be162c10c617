// SPDX-License-Identifier: Apache-2.0
// The names of a lock and of its owner, as types that cannot be swapped.
#pragma once

#include "base/result.h"
#include "base/rng.h"

#include <string>
#include <string_view>

namespace rlock {

// A lock's name: the Redis key itself, byte for byte, prefix included.
class LockName {
 public:
  // Faults: usage (empty, over 1024 bytes, control characters), config (braces that would put the lock and
  // its bookkeeping into two cluster slots, so that it could be taken but not released).
  static Result<LockName> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return m_text; }
  friend auto operator<=>(const LockName&, const LockName&) = default;

 private:
  explicit LockName(std::string text) : m_text(std::move(text)) {}
  std::string m_text;
};

// Who holds: what the server compares. Never used by two acquisitions, unless one is nested in the other.
class Owner {
 public:
  static Owner fresh(Rng& rng, int pid);  // "<uuid>:<pid>", as Redisson's dashboards split it
  static Owner of(std::string text) { return Owner(std::move(text)); }  // read from a server, or a token

  [[nodiscard]] const std::string& text() const { return m_text; }
  friend bool operator==(const Owner&, const Owner&) = default;

 private:
  explicit Owner(std::string text) : m_text(std::move(text)) {}
  std::string m_text;
};

// One of the times that an owner holds a lock. The outermost hold goes by the owner's own name; one that is nested in it
// has a name of its own, so that neither taking nor releasing counts twice when it is sent twice.
struct Hold {
  Hold(Owner outermost) : owner(std::move(outermost)), id(owner.text()) {}  // NOLINT(*-explicit-*)
  static Hold nested_in(Owner ancestor, Rng& rng, int pid);
  static Hold of_token(std::string_view token);

  // What is given to people: the owner, and for a nested hold "OWNER/ID".
  [[nodiscard]] std::string token() const { return is_nested() ? owner.text() + "/" + id : owner.text(); }
  [[nodiscard]] bool is_nested() const { return id != owner.text(); }

  Owner owner;
  std::string id;
};

}  // namespace rlock
