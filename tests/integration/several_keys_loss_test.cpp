// SPDX-License-Identifier: Apache-2.0
// Several locks of which one is lost, or whose runner is killed or loses its server, while it holds or waits.
#include "support/integration.h"
#include "support/several_keys_fixture.h"

using namespace rlock::test;

TEST_SUITE_BEGIN("topology");

TEST_CASE("several keys: losing one is losing all, and the message names it")
{
  for (const std::string lost : {"a", "b", "c"}) {
    CAPTURE(lost);
    const SeveralKeysFixture fixture;
    Process job = fixture.run({"-k", "a", "-k", "b", "-k", "c"}, {"sleep", "60"});
    fixture.wait_for("c");
    fixture.wait_for_watchdogs(3);
    fixture.release_as_foreign(lost);
    expect_end(job, exited(121), {err_has("the lock " + lost + " was lost: expired or deleted")}, 5s);
    for (const char* key : {"a", "b", "c"}) {
      CHECK(fixture.is_free(key));
    }
  }
}

KEYS_CASE("several keys: --on-lost warn goes on under what is left, and still obeys force-unlock")
{
  Process job = fixture.run({"-k", "a", "-k", "b", "--ttl", "3s", "--on-lost", "warn"}, {"sleep", "60"});
  fixture.wait_for("b");
  fixture.wait_for_watchdogs(2);
  fixture.release_as_foreign("a");
  wait_until([&] { return has(job.err(), "the lock a was lost"); }, "it was noticed");
  std::this_thread::sleep_for(3500ms);
  CHECK(job.running());
  CHECK(fixture.pttl("b") > 0);
  CHECK(rlock_on(fixture.server, {"force-unlock", "-k", "b", "--yes"}).code == 0);
  CHECK(job.wait(5s) == exited(121));
  CHECK(fixture.is_free("b"));
}

KEYS_CASE("several keys: what is left by kill -9 ends with its lease")
{
  Process job = fixture.run({"-k", "a", "-k", "b", "--ttl", "2s"}, {"sleep", "60"});
  fixture.wait_for("b");
  job.signal(SIGKILL);
  job.wait();
  for (const std::string& key : as_texts(fixture.server.command({"KEYS", "*"}))) {
    CHECK(fixture.pttl(key) != -1);
  }
  CHECK(fixture.run({"-k", "b", "-k", "a"}, {"true"}).wait(10s) == success);
}

KEYS_CASE("several keys: a signal while waiting for one releases the others and leaves the queue")
{
  fixture.hold_as_foreign("b");
  Process job = fixture.run({"-k", "a", "-k", "b", "--ttl", "3s"}, {"true"});
  fixture.wait_for_line("b");
  SUBCASE("at once") {}
  SUBCASE("when a is watched") { std::this_thread::sleep_for(400ms); }
  job.signal(SIGTERM);
  CHECK(job.wait(5s) == died_of(SIGTERM));
  CHECK(fixture.is_free("a"));
  CHECK(fixture.in_line("b") == 0);
}

KEYS_CASE("several keys: the lower one lost while the higher is waited for: begun again, under another token")
{
  fixture.hold_as_foreign("b");
  Process job = fixture.run({"-k", "a", "-k", "b"}, {"touch", fixture.path("ran")});
  fixture.wait_for_line("b");
  fixture.wait_for_watchdogs(1, "{a}*");
  const std::string first = fixture.owner("a");
  SUBCASE("deleted")
  {
    fixture.release_as_foreign("a");
    wait_until([&] { return !fixture.is_free("a") && fixture.owner("a") != first; }, "it is taken anew");
    CHECK(has(job.err(), "the lock a was lost: expired or deleted"));
  }
  SUBCASE("taken by somebody")
  {
    fixture.server.command({"DEL", "a"});
    fixture.hold_as_foreign("a");
    fixture.server.command({"PUBLISH", "redisson_lock__channel:{a}", "0"});
    fixture.wait_for_line("a");
    CHECK(fixture.in_line("b") == 0);
    fixture.release_as_foreign("a");
  }
  SUBCASE("force-unlocked")
  {
    CHECK(rlock_on(fixture.server, {"force-unlock", "-k", "a", "--yes"}).code == 0);
    wait_until([&] { return !fixture.is_free("a") && fixture.owner("a") != first; }, "it is taken anew");
  }
  fixture.wait_for_line("b");
  CHECK_FALSE(std::filesystem::exists(fixture.dir / "ran"));
  fixture.release_as_foreign("b");
  CHECK(job.wait() == success);
  CHECK(std::filesystem::exists(fixture.dir / "ran"));
}

KEYS_CASE("several keys: a server that goes away while one is waited for is asked again")
{
  fixture.hold_as_foreign("b");
  Process job = fixture.run({"-k", "a", "-k", "b", "--ttl", "600ms"}, {"touch", fixture.path("ran")});
  fixture.wait_for_line("b");
  SUBCASE("killed, and back with nothing")
  {
    fixture.server.kill_hard();
    std::this_thread::sleep_for(1500ms);
    fixture.server.restart();
  }
  SUBCASE("silent for longer than the lease")
  {
    fixture.server.stop_signal();
    std::this_thread::sleep_for(1500ms);
    fixture.server.cont();
    fixture.release_as_foreign("b");
  }
  CHECK(job.wait(20s) == success);
  CHECK(std::filesystem::exists(fixture.dir / "ran"));
  CHECK(fixture.is_free("a"));
}

KEYS_CASE("several keys: a server that goes away while one is waited for, for longer than the lease")
{
  fixture.hold_as_foreign("b");
  Process job = fixture.run({"-k", "a", "-k", "b", "--ttl", "600ms", "-w", "2s"}, {"touch", fixture.path("ran")});
  fixture.wait_for_line("b");
  fixture.server.kill_hard();
  CHECK(job.wait(10s) == exited(69));
  CHECK_FALSE(std::filesystem::exists(fixture.dir / "ran"));
}

TEST_SUITE_END();
