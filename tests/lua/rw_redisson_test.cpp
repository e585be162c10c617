// SPDX-License-Identifier: Apache-2.0
// The read-write lock of rlock and of Redisson, on one key.
#include "lua/read_write_lock.h"
#include "support/foreign_kinds.h"

using namespace rlock::test;

RW_LOCK_CASE("rw beside Redisson: each keeps the other's writers out, and shares with its readers")
{
  const ForeignReadWrite java(lock.server, "uuid:1");
  REQUIRE_FALSE(java.read());
  CHECK(word(lock.read("a")) == "granted");
  CHECK(word(lock.write("w")) == "busy");
  CHECK(java.end_read() == 0);
  CHECK(java.write());
  CHECK(word(lock.end_read("a")) == "released");
  REQUIRE_FALSE(java.write());
  const Reply refused = lock.read("a");
  CHECK(word(refused) == "busy");
  CHECK(refused.elements.at(2).text == "uuid:1");
  CHECK(refused.elements.at(4).kind == Reply::Kind::nil);  // it has no record
  CHECK(java.end_write() == 1);
  CHECK(word(lock.write("w")) == "granted");
  CHECK(java.read());
  CHECK(java.write());
}

RW_LOCK_CASE("rw beside Redisson: the release of one client's reader keeps the other's")
{
  const ForeignReadWrite java(lock.server, "uuid:1");
  ChannelListener listener(lock.server, rw_channel);
  lock.read("a", 20'000);
  java.read(30'000);
  CHECK(java.end_read() == 0);
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"a", "1"}});
  CHECK(lock.pttl("k") <= 20'000);
  CHECK(lock.pttl("k") > 19'000);
  java.read(10'000);
  CHECK(word(lock.end_read("a")) == "released");
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"uuid:1", "1"}});
  CHECK(lock.pttl("k") <= 10'000);
  CHECK(lock.pttl("k") > 9000);
  CHECK(listener.received() == Words{});
  CHECK(java.end_read() == 1);
  CHECK(listener.received() == Words{"0"});
}

RW_LOCK_CASE("rw beside Redisson: nested reads of rlock survive its release")
{
  const ForeignReadWrite java(lock.server, "uuid:1");
  lock.read("a");
  lock.nested(Reader{}, "a", "inner");
  java.read();
  CHECK(java.end_read() == 0);
  CHECK(lock.hash("k").at("a") == "2");
  CHECK(word(lock.end_nested(Reader{}, "a", "inner")) == "still_held");
  java.read();
  CHECK(java.end_read() == 0);
  CHECK(word(lock.end_read("a")) == "released");
}

RW_LOCK_CASE("rw beside Redisson: a renewal by rlock restores what its renewal shortened")
{
  const ForeignReadWrite java(lock.server, "uuid:1");
  lock.read("a", 300'000);
  java.read(30'000);
  CHECK(java.renew_read(30'000));
  CHECK(lock.pttl("k") <= 30'000);
  CHECK(word(lock.renew("a", 250'000)) == "kept");
  CHECK(lock.pttl("k") > 240'000);
  CHECK(lock.pttl(timeout_of("a")) > 290'000);
}

TEST_CASE("rw beside Redisson: the field of a dead reader blocks no client, whichever client releases last")
{
  for (const bool ours_is_last : {true, false}) {
    CAPTURE(ours_is_last);
    const ReadWriteLock lock;
    const ForeignReadWrite java(lock.server, "uuid:1");
    const ForeignReadWrite dead(lock.server, "uuid:2");
    ChannelListener listener(lock.server, rw_channel);
    dead.read(), java.read(), lock.read("a"), lock.read("killed");
    lock.server.command({"DEL", timeout_of("uuid:2"), timeout_of("killed")});
    if (ours_is_last) {
      CHECK(java.end_read() == 0);
      CHECK(word(lock.end_read("a")) == "released");
    } else {
      CHECK(word(lock.end_read("a")) == "released");
      CHECK(java.end_read() == 1);
    }
    CHECK(lock.exists("k") == 0);
    CHECK(listener.received() == Words{"0"});
    CHECK(word(lock.write("w")) == "granted");
  }
}

RW_LOCK_CASE("rw beside Redisson: a writer that goes on reading admits rlock readers, and no stray field blocks")
{
  const ForeignReadWrite java(lock.server, "uuid:1");
  java.write();
  java.read();
  CHECK(java.end_write() == 1);
  CHECK(word(lock.read("a")) == "granted");
  CHECK(java.end_read() == 0);
  CHECK(word(lock.end_read("a")) == "released");
  REQUIRE(word(lock.write("w")) == "granted");
  CHECK(word(lock.end_write("w")) == "released");
  REQUIRE_FALSE(java.write());
  CHECK(java.end_write() == 1);
  CHECK(lock.exists("k") == 0);
}

RW_LOCK_CASE("rw beside Redisson: an rlock writer that goes on reading leaves what its readers expect")
{
  const ForeignReadWrite java(lock.server, "uuid:1");
  lock.write("a");
  lock.nested(Reader{}, "a", "inner");
  lock.end_write("a");
  REQUIRE_FALSE(java.read());
  CHECK(word(lock.end_nested(Reader{}, "a", "inner")) == "released");
  CHECK(lock.hash("k") == HashFields{{"mode", "read"}, {"uuid:1", "1"}});
  CHECK(java.end_read() == 1);
}
