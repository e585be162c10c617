// SPDX-License-Identifier: Apache-2.0
#include "engine/lock_keys.h"
#include "support/test.h"

#include <array>

using namespace rlock::test;

TEST_CASE("lock name: what is refused, and with which code")
{
  struct Row {
    const char* why;
    std::string text;
    const char* expect;
  };
  const Row rows[] = {
      {"plain", "stock", "ok"},
      {"any bytes that print", "größe:1/2 ü", "ok"},
      {"a tag of its own", "a{b}c", "ok"},
      {"the first pair counts", "a{b}{c}", "ok"},
      {"the longest", std::string(1024, 'k'), "ok"},
      {"empty", "", "usage"},
      {"too long", std::string(1025, 'k'), "usage"},
      {"a newline", "a\nb", "usage"},
      {"a zero byte", std::string("a\0b", 3), "usage"},
      {"an open brace: acquired but never released on a cluster", "a{b", "config"},
      {"a closing brace alone", "a}b", "config"},
      {"an empty tag", "x{}y", "config"},
      {"one brace", "{", "config"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const auto name = LockName::parse(row.text);
    const std::string got = name                                     ? "ok"
                            : name.error().code == ErrorCode::usage  ? "usage"
                            : name.error().code == ErrorCode::config ? "config"
                                                                     : "other";
    CHECK(got == row.expect);
    if (!name) {
      CHECK(name.error().text.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("lock keys: Redisson's names, byte for byte, and rlock's beside them")
{
  const LockKeys plain(*LockName::parse("stock"));
  CHECK(plain.lock == "stock");
  CHECK(plain.channel == "redisson_lock__channel:{stock}");
  CHECK(plain.fence == "redisson_lock_token:{stock}");
  CHECK(plain.holder == "rlock:holder:{stock}");

  const LockKeys tagged(*LockName::parse("a{b}c"));
  CHECK(tagged.channel == "redisson_lock__channel:a{b}c");
  CHECK(tagged.fence == "redisson_lock_token:a{b}c");
  CHECK(tagged.owner_channel == "rlock:owner:tagged:a{b}c:");
}

TEST_CASE("lock keys: rlock's own keys differ for a name and the same name in braces")
{
  for (const LockKind& kind : {LockKind(Plain{}), LockKind(Writer{}), LockKind(Permits{2}), LockKind(StringLock{})}) {
    const LockKeys bare(*LockName::parse("stock"), kind);
    const LockKeys braced(*LockName::parse("{stock}"), kind);
    using Key = std::string LockKeys::*;
    for (const Key key : std::initializer_list<Key>{&LockKeys::holder, &LockKeys::force, &LockKeys::events,
                                                    &LockKeys::queue, &LockKeys::waiters, &LockKeys::reserved,
                                                    &LockKeys::done, &LockKeys::owner_channel}) {
      CHECK((bare.*key).starts_with("rlock:"));
      CHECK(bare.*key != braced.*key);
    }
    CHECK(bare.fence == braced.fence);  // as Redisson has it
    CHECK(bare.channel == braced.channel);
  }
}

TEST_CASE("lock keys: the lock is told from a key beside it")
{
  for (const std::string text : {"stock", "{stock}", "a{b}c", "tagged:x", "{stock}{}", "a b"}) {
    CAPTURE(text);
    const LockKeys keys(*LockName::parse(text));
    CHECK(lock_beside("holder", keys.holder) == text);
    CHECK(lock_beside("events", keys.events) == text);
    CHECK(lock_beside("events", keys.holder).empty());
  }
  CHECK(globs_beside("events", "app:*") ==
        std::array<std::string, 2>{"rlock:events:{app:*}", "rlock:events:tagged:app:*"});
}

TEST_CASE("hold: its token is the owner, or names a nested one, and comes back as it was")
{
  SystemRng rng;
  const Owner owner = Owner::fresh(rng, 7);
  const Hold outermost = owner;
  CHECK(outermost.token() == owner.text());
  CHECK(Hold::of_token(outermost.token()).id == owner.text());
  const Hold nested = Hold::nested_in(owner, rng, 8);
  CHECK(nested.is_nested());
  CHECK(Hold::of_token(nested.token()).owner == owner);
  CHECK(Hold::of_token(nested.token()).id == nested.id);

  const std::string id = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
  for (const std::string& foreign : std::vector<std::string>{"", "a/b", "/" + id, "o:1/" + id + "x", "o:1/8743c9c0",
                                                             "o:1/" + id.substr(0, 37), "o:1/"}) {
    CAPTURE(foreign);
    CHECK(Hold::of_token(foreign).owner.text() == foreign);
    CHECK_FALSE(Hold::of_token(foreign).is_nested());
  }
  CHECK(Hold::of_token("a/b/" + id).owner.text() == "a/b");
}
