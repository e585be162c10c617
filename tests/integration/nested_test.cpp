// SPDX-License-Identifier: Apache-2.0
// A job that runs rlock on the lock that it runs under: the hold is counted, and does not wait.
#include "support/integration.h"
#include "support/nested_fixture.h"

using namespace rlock::test;

TEST_SUITE_BEGIN("topology-quick");

TEST_CASE("nested: three deep it counts to three, under one owner and number, and goes with the last")
{
  ThreeDeep deep("30s");
  const NestedRunsFixture& fixture = deep.fixture;
  fixture.wait_for("third.here");
  const std::string owner = fixture.variable("middle", "RLOCK_TOKEN");
  CHECK(fixture.variable("inner", "RLOCK_TOKEN").starts_with(owner + "/"));
  CHECK(fixture.variable("third", "RLOCK_TOKEN").starts_with(owner + "/"));
  CHECK(fixture.variable("third", "RLOCK_TOKEN") != fixture.variable("inner", "RLOCK_TOKEN"));
  for (const char* name : {"RLOCK_FENCE", "RLOCK_KEY"}) {
    CHECK(fixture.variable("middle", name) != "");
    CHECK(fixture.variable("inner", name) == fixture.variable("middle", name));
    CHECK(fixture.variable("third", name) == fixture.variable("middle", name));
  }
  const std::string who =
      as_text(fixture.server.command({"HGET", "rlock:holder:{k}", fixture.variable("middle", "RLOCK_TOKEN")}));
  CHECK(has(who, "pid=" + std::to_string(deep.outer->pid())));
  CHECK(fixture.all_keys_end());

  fixture.tell("third");
  CHECK(fixture.number_in("inner.code") == 0);
  fixture.comes_to(2);
  fixture.tell("inner");
  CHECK(fixture.number_in("middle.code") == 0);
  fixture.comes_to(1);
  fixture.tell("middle");
  CHECK(deep.outer->wait() == success);
  CHECK(deep.outer->err() == "");
  fixture.comes_to(0);
  CHECK(as_int(fixture.server.command({"EXISTS", "rlock:holder:{k}"})) == 0);
}

NESTED_RUNS_CASE("nested: a in b in a")
{
  const Words third = fixture.innermost("third");
  const Words second = fixture.script("second.sh", NestedRunsFixture::inner("inner", "-k a", third));
  const Words first = fixture.script("first.sh", NestedRunsFixture::inner("middle", "-k b", second));
  Process outer = fixture.start({"-k", "a"}, first);
  fixture.wait_for("third.here");
  CHECK(fixture.count("a") == 2);
  CHECK(fixture.count("b") == 1);
  CHECK(fixture.variable("third", "RLOCK_TOKEN").starts_with(fixture.variable("middle", "RLOCK_TOKEN") + "/"));
  CHECK_FALSE(fixture.variable("inner", "RLOCK_TOKEN").starts_with(fixture.variable("middle", "RLOCK_TOKEN")));
  for (const char* name : {"third", "inner", "middle"}) {
    fixture.tell(name);
  }
  CHECK(outer.wait() == success);
  CHECK(fixture.number_in("inner.code") == 0);
  CHECK(fixture.count("a") == 0);
  CHECK(fixture.count("b") == 0);
}

TEST_CASE("nested: a lock that no ancestor holds is waited for as ever")
{
  skip_on_quorum("a quorum has no queue");
  const NestedRunsFixture fixture;
  const Words there = fixture.innermost("holder");
  Process holder = fixture.start({"-k", "b"}, there);
  fixture.wait_for("holder.here");
  CHECK(fixture.start({"-k", "a"}, fixture.script("try.sh", "$RLOCK run -n -k b -- true\n")).wait() == exited(75));
  Process outer = fixture.start({"-k", "a"}, fixture.script("wait.sh", "$RLOCK run -k b -- true\n"));
  wait_until([&] { return as_int(fixture.server.command({"ZCARD", "rlock:queue:{b}"})) == 1; }, "the inner one waits");
  fixture.tell("holder");
  CHECK(outer.wait() == success);
}

NESTED_RUNS_CASE("nested: a lease of its own neither shortens nor outlives the outer one's")
{
  Process outer = fixture.start({"-k", "k", "--ttl", "20s"},
                                fixture.script("first.sh", "$RLOCK run -k k --lease 2s -- sleep 30\necho $? > code\n" +
                                                               NestedRunsFixture::until_told("first")));
  fixture.comes_to(2);
  const auto is_over = [&] {
    CHECK(fixture.pttl() > 8000);
    return fixture.exists("code");
  };
  wait_until(is_over, "the inner lease is over");
  CHECK(fixture.number_in("code") == 124);
  fixture.comes_to(1);
  fixture.tell("first");
  CHECK(outer.wait() == success);
}

TEST_CASE("nested: every kind of lock counts, and what cannot be nested is refused")
{
  struct Row {
    const char* outer;
    const char* inner;
    int code;
  };
  const Row rows[] = {
      {"-x", "-x", 0},
      {"-s", "-s", 0},
      {"-x", "-s", 0},
      {"--permits 1", "--permits 1", 0},
      {"--format string", "--format string", 0},
      {"-s", "-x", 78},  // two of these would wait for each other
      {"-x", "", 78},    // another lock
  };
  for (const Row& row : rows) {
    CAPTURE(row.outer);
    CAPTURE(row.inner);
    const NestedRunsFixture fixture;
    const std::string again = "$RLOCK run -k k -w 3s " + std::string(row.inner) + " -- ";
    const Words third = fixture.script("third.sh", again + "touch third.here\n");
    const Words second = fixture.script("second.sh", again + third[0] + " " + third[1] + "\n");
    Words options{"-k", "k"};
    std::istringstream words(row.outer);
    for (std::string word; words >> word;) {
      options.push_back(word);
    }
    CHECK(fixture.start(options, second).wait() == exited(row.code));
    CHECK(fixture.exists("third.here") == (row.code == 0));
    CHECK(rlock_on(fixture.server, {"status", "-k", "k"}).code == 1);
  }
}

TEST_CASE("nested: an inner run of another kind is refused, and the outer one's success stays in the history")
{
  const std::pair<std::string, std::string> rows[] = {{"", "--permits 2"}, {"", "-x"}, {"--permits 2", ""}, {"-x", ""}};
  for (const auto& row : rows) {
    const auto& [outer, inner] = row;
    CAPTURE(row.first);
    CAPTURE(row.second);
    const NestedRunsFixture fixture;
    const std::string again = "$RLOCK run -k k -n " + inner + " -- true; echo $? >inner.code\n";
    Words options{"-k", "k"};
    std::istringstream words(outer);
    for (std::string word; words >> word;) {
      options.push_back(word);
    }
    CHECK(fixture.start(options, fixture.script("second.sh", again)).wait() == success);
    CHECK(fixture.number_in("inner.code") == 78);
    CHECK(rlock_on(fixture.server, {"history", "--failed", "k"}).out == "");
    CHECK(has(rlock_on(fixture.server, {"history", "k"}).out, "  succeeded  0 "));
    CHECK_FALSE(has(rlock_on(fixture.server, {"events", "k"}).out, "lost"));
  }
}

NESTED_RUNS_CASE("nested: once, in a lock that is held already, runs once")
{
  const std::string once = "$RLOCK once -k k --for 1h -- sh -c 'echo ran >> ran'\n";
  CHECK(fixture.start({"-k", "k"}, fixture.script("twice.sh", once + once + "cat ran\n")).wait() == success);
  Process show = fixture.start({"-k", "k"}, fixture.script("show.sh", once + "cat ran\n"));
  expect_end(show, success, {out_is("ran\n")});
  fixture.comes_to(0);
}

NESTED_RUNS_CASE("nested: acquire counts as well, and lets go of its own hold alone")
{
  const Words script = fixture.script(
      "script.sh", "token=$($RLOCK acquire -k k --pid $$ -w 3s) || exit\necho $token > token\n" +
                       NestedRunsFixture::until_told("taken") +
                       "$RLOCK check --token $token || exit\n$RLOCK renew --token $token --lease 40s || exit\n"
                       "$RLOCK release --token $token || exit\ntouch released.here\n" +
                       NestedRunsFixture::until_told("released") +
                       "eval \"$($RLOCK acquire -k k --pid $$ -w 3s --export)\"\n"
                       "$RLOCK run -k k -w 3s -- touch third.here || exit\n"
                       "touch again.here\n" +
                       NestedRunsFixture::until_told("again"));
  Process outer = fixture.start({"-k", "k"}, script);
  fixture.wait_for("token");
  fixture.comes_to(2);
  fixture.tell("taken");
  fixture.wait_for("released.here");
  fixture.comes_to(1);
  CHECK(outer.running());
  fixture.tell("released");
  fixture.wait_for("again.here");
  CHECK(fixture.exists("third.here"));
  fixture.comes_to(2);
  fixture.tell("again");
  expect_end(outer, success, {err_is("")});
  fixture.comes_to(0);
}

TEST_SUITE_END();
