// SPDX-License-Identifier: Apache-2.0
// rflock locks and waits as flock(1): each case runs on flock first, where flock offers it. The numbers here and in
// flock_words_test.cpp are those of the behaviours of flock(1).
#include "support/flock_fixture.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;
const Words say_no{"echo", "no"};

}  // namespace

FLOCK_CASE("flock: 1, 2, 4: without waiting a busy lock is refused at once with the chosen code, and no command runs")
{
  Process holder = flock.hold({"-s"});
  std::vector<Words> spellings{{"-n", "-E", "123"},
                               {"--nonblock", "--conflict-exit-code", "123"},
                               {"-nE123"},
                               {"--nonblocking", "--conflict-exit-code=123"},
                               {"-x", "--nb", "-E123"},
                               {"-e", "-w", "0", "-E", "123"},
                               {"-s", "-x", "-n", "-E", "123"}};
  for (const Words& options : spellings) {
    CAPTURE(options.back());
    expect_end(flock.run(options, say_no), 123, {out_is(""), err_is("")});
  }
  const Finished no_fork = flock.run({"--no-fork", "-n", "-E", "123"}, say_no);
  CHECK(no_fork.code == (flock.is_rflock() ? 64 : 123));
  CHECK(no_fork.out == "");
  CHECK(flock.run({"-n"}, say_no).code == 1);  // 19
  flock.end(holder);
}

FLOCK_CASE("flock: 3: a shared lock is granted at once beside another")
{
  Process holder = flock.hold({"--shared"});
  for (const Words& options : {Words{"-s", "-n"}, Words{"-x", "-s", "-n"}}) {  // the last kind counts
    expect_end(flock.run(options, {"echo", "in"}), 0, {out_is("in\n")});
  }
  flock.end(holder);
}

TEST_CASE("flock: 6: what is elsewhere is another lock")
{
  skip_on({TopologyKind::cluster}, "a cluster has one db");
  const RedisServer server;
  const FlockFixture flock = rflock_fixture(server);
  Process holder = flock.hold({});
  CHECK(flock.run({"-n", "--prefix", "other:"}, {"true"}).code == 0);
  CHECK(flock.run({"-n", "--server", server.url() + "?db=1"}, {"true"}).code == 0);
  CHECK(flock.run({"-n"}, {"true"}).code == 1);
  flock.end(holder);
}

FLOCK_CASE("flock: 7, 8, 9: waiters get the lock as soon as it is free, within their limits, one after the other")
{
  Process holder = flock.hold({"-s"});
  Process waiter = flock.start({"-w", "8", "-E", "5"}, {"sh", "-c", "[ -e go ] && echo after"});
  std::this_thread::sleep_for(300ms);
  CHECK(waiter.running());  // it did not barge in
  CHECK(waiter.out() == "");
  const auto free_from = std::chrono::steady_clock::now();
  flock.release_all();
  CHECK(waiter.wait() == success);
  CHECK(std::chrono::steady_clock::now() - free_from < 2s);
  expect_end(holder, success, {out_is("start\nend\n")});
  CHECK(waiter.out() == "after\n");
}

TEST_CASE("flock: 10: what was unlocked is free, though the script goes on, and nothing is said of it")
{
  for_flock_and_rflock([](const FlockFixture& flock) {
    const std::string take = flock.is_rflock() ? R"("$PROGRAM" "$LOCK" bash -c 'unlock() { "$PROGRAM" -u "$LOCK"; }; )"
                                               : R"("$PROGRAM" "$LOCK" bash -c 'unlock() { "$PROGRAM" -u 3; }; )";
    Process script = flock.script(take + R"("$PROGRAM" -w 0 "$LOCK" echo no
                                            unlock
                                            "$PROGRAM" -w 0 "$LOCK" echo free; : >unlocked
                                            until [ -e go ]; do sleep 0.02; done; exit 9')");
    wait_until([&] { return fs::exists(flock.dir() / "unlocked"); }, "it was unlocked");
    CHECK(script.running());
    CHECK(flock.is_free());
    std::this_thread::sleep_for(400ms);  // long enough for a watchdog to look
    flock.release_all();
    expect_end(script, exited(9), {out_is("free\n"), err_is("")});
  });
}

// A fail-over may lose the grant, and not the place that the holder had in line before.
SERVER_CASE("flock: a lost lock whose holder the server still has in its queue was not unlocked by the command")
{
  const FlockFixture flock = rflock_fixture(server);
  Process holder = flock.start({"--ttl", "9s"}, {"sleep", "6"});
  const auto listens = [&] { return !as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:taken:*"})).empty(); };
  wait_until(listens, "the command's rlock listens");
  const Words fields = as_texts(server.command({"HKEYS", "k"}));
  const auto is_hold = [](const std::string& field) { return field.ends_with(":write"); };
  const auto hold = std::find_if(fields.begin(), fields.end(), is_hold);
  REQUIRE(hold != fields.end());
  const std::string owner = hold->substr(0, hold->rfind(':'));
  server.command({"HSET", "rlock:waiters-rw:{k}", "wish:" + owner, "write"});
  server.command({"ZADD", "rlock:queue-rw:{k}", "1", owner});
  server.command({"HSET", "k", "somebody:1:write", "1"});
  server.command({"PEXPIRE", "k", "60000"});
  server.command({"HDEL", "k", *hold});
  expect_end(holder, exited(121), {err_has("now held by somebody:1")}, 15s);
  CHECK(as_text(server.command({"HGET", "k", "somebody:1:write"})) == "1");
}

FLOCK_CASE("flock: 11: with --close the command has one descriptor less")
{
  const auto descriptors = [&](const Words& options) {
    const Finished end = flock.run(options, {"sh", "-c", "set -- /proc/$$/fd/*; echo $#; exit 65"});
    CHECK(end.code == 65);
    return std::stoi(end.out);
  };
  CHECK(descriptors({"--close"}) == descriptors({}) - 1);
  CHECK(descriptors({"-o"}) == descriptors({}) - 1);
}

FLOCK_CASE("flock: 20: a caller that ignores SIGCHLD gets the status all the same")
{
  ProcessOptions options;
  options.ignored_signals = {SIGCHLD};
  CHECK(flock.run({}, {"sh", "-c", "exit 7"}, options).code == 7);
}

FLOCK_CASE("flock: 21: TERM ends a waiter at once, and the queue is empty")
{
  Process holder = flock.hold({});
  Process waiter = flock.start({}, say_no);
  std::this_thread::sleep_for(200ms);
  CHECK(waiter.running());
  waiter.signal(SIGTERM);
  CHECK(waiter.wait(5s) == died_of(SIGTERM));
  flock.end(holder);
  CHECK(flock.is_free());
  CHECK(waiter.out() == "");
}

SERVER_CASE("flock: 21: TERM removes the waiter from the queue")
{
  const FlockFixture flock = rflock_fixture(server);
  Process holder = flock.hold({});
  Process waiter = flock.start({}, say_no);
  const auto in_line = [&] { return as_texts(server.command({"KEYS", "rlock:queue*"})).size(); };
  wait_until([&] { return in_line() == 1; }, "it is queued");
  waiter.signal(SIGTERM);
  CHECK(waiter.wait(5s) == died_of(SIGTERM));
  CHECK(in_line() == 0);
  flock.end(holder);
}

FLOCK_CASE("flock: 22: what the command leaves behind keeps the lock until it ends, unless -o")
{
  const Words leaves_one{"sh", "-c", "(until [ -e go ]; do sleep 0.02; done; : >finished) & exit 3"};
  CHECK(flock.run({}, leaves_one).code == 3);
  CHECK_FALSE(flock.is_free());
  CHECK(flock.run({"-w", "0.3", "-E", "5"}, say_no).code == 5);
  flock.release_all();
  CHECK(flock.run({"-w", "8"}, {"test", "-e", "finished"}).code == 0);

  fs::remove(flock.dir() / "go");
  fs::remove(flock.dir() / "finished");
  CHECK(flock.run({"-o"}, leaves_one).code == 3);
  CHECK(flock.is_free());
  CHECK_FALSE(fs::exists(flock.dir() / "finished"));
  flock.release_all();  // releases the lock; it was not killed
  wait_until([&] { return fs::exists(flock.dir() / "finished"); }, "what was left behind has finished");
}

FLOCK_CASE("flock: 22: the first waiter gets the lock as soon as the leftover process has ended")
{
  CHECK(flock.run({}, {"sh", "-c", "(until [ -e go ]; do sleep 0.02; done) & exit 3"}).code == 3);
  Process waiter = flock.start({}, {"test", "-e", "go"});
  std::this_thread::sleep_for(200ms);
  CHECK(waiter.running());
  flock.release_all();
  CHECK(waiter.wait(5s) == success);
}

FLOCK_CASE("flock: 24: -w takes a part of a second, and -n goes before it")
{
  Process holder = flock.hold({});
  const auto began = std::chrono::steady_clock::now();
  CHECK(flock.run({"-w", "0.3"}, say_no).code == 1);
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(took >= 300ms);
  CHECK(took < 2s);  // on a loaded machine; measured: some ms more than 300
  CHECK(flock.run({"-n", "-w", "9"}, say_no, {}).code == 1);
  CHECK(std::chrono::steady_clock::now() - began < 5s);
  flock.end(holder);
}

FLOCK_CASE("flock: the idiom of a script that locks itself, and that of a crontab")
{
  const fs::path file = flock.dir() / "itself";
  const std::string lock = flock.is_rflock() ? "k" : "$0";
  std::ofstream(file) << "#!/bin/sh\n"
                      << R"([ "$FLOCKER" != "$0" ] && exec env FLOCKER="$0" )" << flock.program() << " -en \"" << lock
                      << R"(" "$0" "$@")"
                      << "\n: >\"began$1\"; until [ -e go ]; do sleep 0.02; done; echo \"$1 done\"\n";
  fs::permissions(file, fs::perms::owner_all);
  Process first = flock.script(file.string() + " 1");
  wait_until([&] { return fs::exists(flock.dir() / "began1"); }, "the first has begun");
  Process second = flock.script(file.string() + " 2");
  CHECK(second.wait() == exited(1));
  CHECK(second.out() + second.err() == "");
  if (flock.is_rflock()) {
    Process cron = flock.script("\"$PROGRAM\" -n \"$LOCK\" echo no || exit 0");
    CHECK(cron.wait() == success);
    CHECK(cron.out() + cron.err() == "");
  }
  flock.release_all();
  expect_end(first, success, {out_is("1 done\n")});
}

FLOCK_CASE("flock: a command that locks its own lock again waits for itself")
{
  Process script = flock.script(R"("$PROGRAM" "$LOCK" "$PROGRAM" -w 0.2 -E 7 "$LOCK" echo no)");
  expect_end(script, exited(7), {out_is("")});
}

SERVER_CASE("flock: --min-hold keeps the lock when the command is over")
{
  CHECK(rlock_on(server, {"flock", "--min-hold", "20s", "k", "true"}).code == 0);
  CHECK(as_int(server.command({"PTTL", "k"})) > 10'000);
  CHECK(rlock_on(server, {"flock", "-n", "k", "true"}).code == 1);
}
