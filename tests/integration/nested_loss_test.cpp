// SPDX-License-Identifier: Apache-2.0
// Nested runs when one of them is killed, or ends early, or when the lock or the server of all is lost.
#include "support/activity_log.h"
#include "support/integration.h"
#include "support/nested_fixture.h"

using namespace rlock::test;

TEST_SUITE_BEGIN("topology-quick");

TEST_CASE("nested: the inner killed, its guardian releases its hold alone")
{
  ThreeDeep deep("30s");
  const NestedRunsFixture& fixture = deep.fixture;
  fixture.wait_for(
      "third.here");  // granted and started: if the runner is killed between the two, the ttl ends the hold
  ::kill(fixture.number_in("inner.pid"), SIGKILL);
  CHECK(fixture.number_in("inner.code") == 128 + SIGKILL);
  fixture.comes_to(2);
  fixture.tell("inner");
  CHECK(fixture.number_in("middle.code") == 0);
  fixture.comes_to(1);
  fixture.tell("middle");
  CHECK(deep.outer->wait() == success);
  fixture.comes_to(0);
}

TEST_CASE("nested: the middle killed, what ran in it is dead at once, and the outer goes on")
{
  const ActivityLog activity;
  ThreeDeep deep("3s", activity.stubborn_tree("third").back());
  const NestedRunsFixture& fixture = deep.fixture;
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  const std::int64_t struck = now_ns();
  ::kill(fixture.number_in("middle.pid"), SIGKILL);
  CHECK(fixture.number_in("middle.code") == 128 + SIGKILL);
  std::this_thread::sleep_for(3500ms);  // longer than the lease, which the outer one renews
  CHECK((activity.jobs().at("third").last_ns - struck) / 1'000'000 < 500);
  CHECK(fixture.count() <= 2);  // the inner guardian may have been killed before it released the innermost hold
  CHECK(fixture.count() >= 1);
  fixture.tell("middle");
  CHECK(deep.outer->wait() == success);
  fixture.gone_within(3s);
}

TEST_CASE("nested: the outer killed, its whole tree dies before the lease is over")
{
  const ActivityLog activity;
  ThreeDeep deep("3s", activity.stubborn_tree("third").back());
  const NestedRunsFixture& fixture = deep.fixture;
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  Process next = fixture.start({"-k", "k"}, {"sh", "-c", activity.short_job("next", 60).back()});
  deep.outer->signal(SIGKILL);
  deep.outer->wait();
  CHECK(next.wait() == success);
  CHECK(overlap(activity.jobs()) == "");
  fixture.comes_to(0);
}

TEST_CASE("nested: all lose the server, and all their jobs are dead before the lease is over")
{
  const ActivityLog activity;
  ThreeDeep deep("3s", activity.stubborn_tree("third").back());
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  const std::int64_t struck = now_ns();
  deep.fixture.server.stop_signal();
  CHECK(deep.outer->wait() == exited(121));
  deep.fixture.server.cont();
  CHECK((activity.jobs().at("third").last_ns - struck) / 1'000'000 < 3000);
  deep.fixture.gone_within(3s);
  CHECK(deep.fixture.all_keys_end());
}

NESTED_RUNS_CASE("nested: the outer lets go first, and the inner goes on holding")
{
  const Words second = fixture.innermost("inner");
  Process outer =
      fixture.start({"-k", "k", "--ttl", "3s"},
                    fixture.script("first.sh", "setsid $RLOCK run -k k --ttl 3s -- " + second[0] + " " + second[1] +
                                                   " &\nuntil [ -e inner.here ]; do sleep 0.02; done\n"));
  CHECK(outer.wait() == success);
  fixture.comes_to(1);
  Process other = fixture.start({"-k", "k"}, {"true"});
  for (int i = 0; i < 80; ++i) {  // longer than the lease
    CHECK(fixture.pttl() > 0);
    std::this_thread::sleep_for(50ms);
  }
  CHECK(other.running());
  fixture.tell("inner");
  CHECK(other.wait() == success);
  fixture.comes_to(0);
}

NESTED_RUNS_CASE("nested: an environment that is out of date gets a lock of its own")
{
  const Words job = fixture.innermost("job");
  Words words{"run", "-S", fixture.server.url(), "-k", "k", "--", job[0], job[1]};
  Process fresh = start_rlock(words, {.env = {{"RLOCK_HELD", "dead:1 k"}}});
  fixture.wait_for("job.here");
  CHECK(fixture.variable("job", "RLOCK_TOKEN") != "dead:1");
  fixture.comes_to(1);

  words = {"run", "-S", fixture.server.url(), "-n", "-k", "k", "--", "true"};
  CHECK(run_rlock(words, {.env = {{"RLOCK_HELD", "dead:1 k"}}}).code == 75);
  fixture.tell("job");
  CHECK(fresh.wait() == success);
}

TEST_CASE("nested: on another server the ancestor is unknown")
{
  skip_on_quorum("the script has room for one URL");
  const NestedRunsFixture fixture;
  const RedisServer elsewhere;
  const Words job = fixture.innermost("job");
  Process outer = fixture.start(
      {"-k", "k"},
      fixture.script("first.sh", NestedRunsFixture::inner("inner", "-S '" + elsewhere.url() + "' -k k", job)));
  fixture.wait_for("job.here");
  fixture.comes_to(1);
  CHECK(as_int(elsewhere.command({"HLEN", "k"})) == 1);
  CHECK(fixture.variable("job", "RLOCK_TOKEN") != fixture.variable("inner", "RLOCK_TOKEN"));
  fixture.tell("job");
  fixture.tell("inner");
  CHECK(outer.wait() == success);
}

NESTED_RUNS_CASE("nested: a lock that the outer has lost is not re-entered")
{
  const Words job = fixture.innermost("job");
  const Words first = fixture.script("first.sh", "touch first.here\n" + NestedRunsFixture::until_told("first") +
                                                     NestedRunsFixture::inner("inner", "-k k", job));
  Process outer = fixture.start({"-k", "k", "--on-lost", "warn"}, first);
  fixture.wait_for("first.here");
  fixture.server.command({"DEL", "k"});
  SUBCASE("it is free")
  {
    fixture.tell("first");
    fixture.wait_for("job.here");
    CHECK(fixture.variable("job", "RLOCK_TOKEN") != fixture.variable("inner", "RLOCK_TOKEN"));
    fixture.comes_to(1);
  }
  SUBCASE("somebody else holds it")
  {
    skip_on_quorum("a quorum has no queue");
    fixture.server.command({"HSET", "k", "somebody:1", "1"});
    fixture.server.command({"PEXPIRE", "k", "20000"});
    fixture.tell("first");
    const auto inner_waits = [&] { return as_int(fixture.server.command({"ZCARD", "rlock:queue:{k}"})) == 1; };
    wait_until(inner_waits, "the inner one waits");
    CHECK(as_text(fixture.server.command({"HGET", "k", "somebody:1"})) == "1");
    fixture.server.command({"DEL", "k"});
    fixture.server.command({"PUBLISH", "redisson_lock__channel:{k}", "0"});
    fixture.wait_for("job.here");
  }
  fixture.tell("job");
  CHECK(fixture.number_in("inner.code") == 0);
  fixture.tell("inner");
  CHECK(outer.wait() == exited(121));
}

TEST_CASE("nested: force-unlock stops them all")
{
  const ActivityLog activity;
  ThreeDeep deep("20s", activity.stubborn_tree("third").back());
  wait_until([&] { return activity.tree_beats("third"); }, "the innermost tree runs");
  expect_end(rlock_on(deep.fixture.server, {"force-unlock", "-k", "k", "--yes", "--json"}), 0,
             {out_has("\"released\"")});
  CHECK(deep.outer->wait(5s) == exited(121));
  const int beats = activity.jobs().at("third").beats;
  std::this_thread::sleep_for(100ms);
  CHECK(activity.jobs().at("third").beats == beats);
  deep.fixture.comes_to(0);
}

TEST_CASE("nested: the inner lets go when memory is full")
{
  ThreeDeep deep("30s");
  deep.fixture.server.command({"CONFIG", "SET", "maxmemory", "1"});
  for (const char* name : {"third", "inner", "middle"}) {
    deep.fixture.tell(name);
  }
  CHECK(deep.outer->wait() == success);
  deep.fixture.comes_to(0);
}

TEST_SUITE_END();
