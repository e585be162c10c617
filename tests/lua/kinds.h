// SPDX-License-Identifier: Apache-2.0
// The kinds of locks, for cases that hold for all of them.
#pragma once

#include "lua/scripted_lock.h"

#include <variant>

namespace rlock::test {

struct Kind {
  const char* what;  // its name in the scripts
  LockKind kind;
};

inline const std::vector<Kind> kinds{{"lock", Plain{}},
                                     {"read-write lock", Reader{}},
                                     {"read-write lock", Writer{}},
                                     {"permits", Permits{3}},
                                     {"string", StringLock{}}};

inline std::string shown(const Kind& kind) { return std::string(kind.what) + " " + requested_mode(kind.kind); }

// TEST_EACH_KIND(NAME) { ... }: a test case that runs once for each kind, with a server of its own; `lock` is of that `kind`.
#define TEST_EACH_KIND(name) TEST_EACH_KIND_AS(DOCTEST_ANONYMOUS(each_kind_), name)
#define TEST_EACH_KIND_AS(body, name)                                                     \
  static void body(const rlock::test::Kind& kind, const rlock::test::ScriptedLock& lock); \
  TEST_CASE(name)                                                                         \
  {                                                                                       \
    for (const rlock::test::Kind& kind : rlock::test::kinds) {                            \
      CAPTURE(shown(kind));                                                               \
      body(kind, rlock::test::ScriptedLock(kind.kind));                                   \
    }                                                                                     \
  }                                                                                       \
  static void body([[maybe_unused]] const rlock::test::Kind& kind, const rlock::test::ScriptedLock& lock)

// The exception of contract §2.4: the number of permits, and their expiries.
inline Words may_last(const LockKind& kind)
{
  return std::holds_alternative<Permits>(kind) ? Words{"k", "{k}:timeout"} : Words{};
}

inline bool only(const Words& some, const Words& allowed)
{
  return std::all_of(some.begin(), some.end(), [&](const std::string& key) {
    return std::find(allowed.begin(), allowed.end(), key) != allowed.end();
  });
}

inline void wait_for_expiry(const ScriptedLock& lock)
{
  wait_until([&] { return lock.holders().empty(); }, "no client holds it any more");
}

}  // namespace rlock::test

#define EACH_KIND_CASE(title) CASE_FOR_EACH(rlock::test::Kind, kind, rlock::test::kinds, title)
