// SPDX-License-Identifier: Apache-2.0
// The keys of all kinds of lock, on a real server: each has a ttl, and nothing is half written.
#include "lua/kinds.h"

#include <iterator>

using namespace rlock::test;

namespace {

// The user either may do all that a lock needs, from acquire to release, or leaves nothing of it. Has all rights afterwards.
void check_user(const ScriptedLock& lock, const Kind& kind)
{
  const Reply answer = lock.acquire("a");
  const bool granted = !answer.is_error() && word(answer) == "granted";
  if (granted) {
    CHECK(word(lock.renew("a")) == "kept");
    CHECK(word(lock.release("a")) == "released");
  }
  lock.server.command({"ACL", "SETUSER", "default", "+@all", "allchannels", "allkeys"});
  CHECK(lock.holders().empty());
  CHECK(only(lock.lasting(), may_last(kind.kind)));
  if (!granted) {
    CHECK(lock.exists("k") == 0);
    CHECK(lock.exists("{k}:timeout") == 0);
    CHECK(lock.exists("{k}:a:rwlock_timeout:1") == 0);
  }
  lock.server.command({"FLUSHALL"});
}

}  // namespace

TEST_EACH_KIND("kinds: no key is without a ttl, whatever was done")
{
  const auto check = [&] { CHECK(only(lock.lasting(), may_last(kind.kind))); };
  lock.acquire("a"), check();
  lock.acquire("a", "inner"), check();
  lock.server.command({"DEL", "rlock:holder:{k}"});
  lock.acquire("a"), check();  // a resend, which changes nothing
  lock.renew("a"), check();
  lock.wait("b"), check();
  lock.ask("a"), check();
  lock.release("a"), check();
  lock.acquire("c"), check();
  lock.release("c", "c", 5000), check();
  for (const char* owner : {"a", "b", "c"}) {
    lock.take_away(owner), check();
  }
  lock.acquire("d", "d", 40), wait_for_expiry(lock), check();
}

EACH_KIND_CASE("kinds: refused by a full memory, nothing of the lock is written")
{
  const ScriptedLock lock(kind.kind, {.args = {"--maxmemory", "1", "--maxmemory-policy", "noeviction"}});
  const Reply refused = lock.acquire("a");
  CHECK(refused.is_error());
  CHECK(has(refused.text, "OOM"));
  CHECK(as_int(lock.server.command({"DBSIZE"})) == 0);
}

TEST_EACH_KIND("kinds: what is held can be renewed, let go and taken away when memory is full")
{
  lock.acquire("a");
  lock.acquire("a", "inner");
  lock.server.command({"CONFIG", "SET", "maxmemory", "1"});
  CHECK(word(lock.renew("a", 60'000)) == "kept");
  CHECK(lock.inspect().elements.at(2).integer > 30'000);
  CHECK(word(lock.release("a", "inner")) == "still_held");
  CHECK(word(lock.release("a")) == "released");
  CHECK(lock.holders().empty());
  lock.server.command({"CONFIG", "SET", "maxmemory", "0"});
  lock.acquire("b");
  lock.acquire("b", "inner");
  lock.server.command({"CONFIG", "SET", "maxmemory", "1"});
  CHECK(word(lock.ask("b")) == "held");
  CHECK(word(lock.renew("b")) == "kept");
  CHECK(word(lock.take_away("b")) == "broken");
  CHECK(lock.holders().empty());
  CHECK(only(lock.lasting(), may_last(kind.kind)));
}

EACH_KIND_CASE("kinds: a missing right leaves nothing of the lock, whichever it is")
{
  const Words missing{"-set",         "-get",     "-exists",  "-hset",   "-hget",          "-hlen",
                      "-hdel",        "-hgetall", "-hkeys",   "-hscan",  "-hexists",       "-hincrby",
                      "-pexpire",     "-pttl",    "-del",     "-time",   "-type",          "-rpush",
                      "-publish",     "-zadd",    "-zrem",    "-zscore", "-zcard",         "-zcount",
                      "-lindex",      "-hmget",   "-zpopmin", "-zrange", "-zrangebyscore", "-zremrangebyscore",
                      "resetchannels"};
  const ScriptedLock lock(kind.kind);
  for (const std::string& right : missing) {
    CAPTURE(right);
    REQUIRE_FALSE(lock.server.command({"ACL", "SETUSER", "default", right}).is_error());
    check_user(lock, kind);
  }
}

TEST_EACH_KIND("kinds: a right that is missing on one key leaves nothing of the lock")
{
  const Words needed{"~k", "~{k}:*", "~redisson_lock_token:*", "~redisson_lock_queue:*", "~rlock:*"};
  for (const std::string& left_out : needed) {
    CAPTURE(left_out);
    Words user{"ACL", "SETUSER", "default", "resetkeys"};
    std::copy_if(needed.begin(), needed.end(), std::back_inserter(user),
                 [&](const std::string& keys) { return keys != left_out; });
    REQUIRE_FALSE(lock.server.command(user).is_error());
    check_user(lock, kind);
  }
}

TEST_EACH_KIND("kinds: without its bookkeeping a lock is still let go")
{
  lock.acquire("a");
  lock.server.command({"DEL", "rlock:holder:{k}"});
  CHECK(word(lock.renew("a")) == "kept");
  CHECK(word(lock.release("a")) == "released");
  CHECK(lock.holders().empty());
}
