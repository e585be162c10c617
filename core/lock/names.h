// SPDX-License-Identifier: Apache-2.0
// The names of a lock and of its owner, as types that cannot be swapped.
#pragma once

#include "base/result.h"
#include "base/rng.h"
#include "lock/mode.h"

#include <array>
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

// The keys and channels that belong to a lock. Those named redisson_* are shared with Redisson's objects, as is `second`;
// the rest is rlock's own and may be lost without harm. All hash to the lock's own cluster slot. Redisson's keys are the
// same for "stock" and "{stock}", rlock's own differ: "rlock:holder:{stock}" and "rlock:holder:tagged:{stock}". Each kind
// has a queue of its own, because a waiter that is handed a lock of another kind would take it for what it is not.
struct LockKeys {
  explicit LockKeys(const LockName& name, const Mode& mode = Plain{});

  std::string lock;           // in the layout of its kind
  std::string fence;          // string: the last fencing number given out
  std::string holder;         // hash {owner: HolderInfo, "hold:ID": owner}
  std::string force;          // hash {owner: by}: who asked whom to let go
  std::string events;         // list: what happened lately
  std::string queue;          // sorted set {owner: arrival}: who waits
  std::string waiters;        // hash {owner: HolderInfo}
  std::string reserved;       // string: a free lock is left to foreign clients for a moment
  std::string fair_queue;     // list: Redisson's fair lock keeps its waiters here
  std::string second;         // of some kinds: the expiry of each holder
  std::string reads;          // prefix of a string for each hold of a reader: "READER:rwlock_timeout:N"
  std::string done;           // string: when a job last succeeded, if that is remembered; and a channel that hears it
  std::string channel;        // "0", say, when the lock becomes free; empty: nobody says it
  std::string taken_channel;  // hears of each grant that found no holder, without a release before it
  std::string owner_channel;  // prefix; followed by an owner: what that one listens on
};

// The globs of the keys "rlock:PART:…" beside all locks whose name matches `glob`; and the lock's name in such a key, empty
// where it is no such key.
std::array<std::string, 2> globs_beside(std::string_view part, std::string_view glob);
std::string lock_beside(std::string_view part, std::string_view key);

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
