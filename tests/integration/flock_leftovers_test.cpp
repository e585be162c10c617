// SPDX-License-Identifier: Apache-2.0
// rlock flock where flock(1) is no model: processes that a command left behind, under a lock that can be lost.
#include "support/flock_fixture.h"
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/paths.h"
#include "support/script.h"

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

// A lock whose command is over, and the process that it left behind with the inherited descriptor.
struct LeftoverFixture {
  RedisServer server;
  FlockFixture flock = rflock_fixture(server);
  pid_t leftover = 0;
  pid_t keeper = 0;

  explicit LeftoverFixture(const std::string& ttl = "30s", const std::string& how = "sleep 100 & echo $! >leftover")
  {
    const Finished end = succeeded(flock.run({"--ttl", ttl}, {"sh", "-c", how}));
    REQUIRE(end.err == "");
    leftover = pid_from(flock.dir() / "leftover");
    wait_until([&] { return (keeper = keeper_pid()) != 0; }, "the keeper is there");
  }

  [[nodiscard]] bool held() const { return is_held(server); }
  [[nodiscard]] std::string owner() const { return as_texts(server.command({"HKEYS", "k"})).at(0); }

  [[nodiscard]] pid_t keeper_pid() const
  {
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      std::string name;
      std::getline(std::ifstream(entry.path() / "comm"), name);
      if (name != "rlock-keeper") {
        continue;
      }
      if (has(text_of(entry.path() / "environ"), server.url())) {
        return std::stoi(entry.path().filename());
      }
    }
    return 0;
  }

  ~LeftoverFixture()
  {
    if (is_alive(leftover)) {
      ::kill(leftover, SIGKILL);
    }
  }
  LeftoverFixture(const LeftoverFixture&) = delete;
  LeftoverFixture& operator=(const LeftoverFixture&) = delete;
};

void wait_until_dead(pid_t pid, Millis timeout = 10s)
{
  wait_until([&] { return !is_alive(pid); }, "process " + std::to_string(pid) + " is dead", timeout);
}

}  // namespace

TEST_CASE("flock leftovers: a keeper renews for as long as they live, and releases then")
{
  LeftoverFixture fixture("2s");
  REQUIRE(fixture.keeper != 0);
  const std::string owner = fixture.owner();
  const auto over = std::chrono::steady_clock::now() + 5s;
  while (std::chrono::steady_clock::now() < over) {
    REQUIRE(fixture.held());
    REQUIRE(fixture.owner() == owner);
    std::this_thread::sleep_for(10ms);
  }
  CHECK(is_alive(fixture.leftover));
  ::kill(fixture.leftover, SIGKILL);
  wait_until([&] { return !fixture.held(); }, "the lock is free", 1s);
  wait_until_dead(fixture.keeper);
}

TEST_CASE("flock leftovers: when the lock is lost they are stopped")
{
  LeftoverFixture fixture("2s");
  fixture.server.command({"DEL", "k"});
  wait_until_dead(fixture.leftover);
  wait_until_dead(fixture.keeper);
  CHECK_FALSE(is_held(fixture.server));
}

TEST_CASE("flock leftovers: dead before the lock could be another's, whatever became of the keeper")
{
  SUBCASE("killed")
  {
    LeftoverFixture fixture;
    ::kill(fixture.keeper, SIGKILL);
    wait_until([&] { return !fixture.held(); }, "the guardian has released the lock");
    CHECK_FALSE(is_alive(fixture.leftover));
  }
  SUBCASE("stopped")
  {
    LeftoverFixture fixture("2s");
    ::kill(fixture.keeper, SIGSTOP);
    while (is_alive(fixture.leftover)) {
      REQUIRE(fixture.held());
      std::this_thread::sleep_for(5ms);
    }
    ::kill(fixture.keeper, SIGKILL);
  }
  SUBCASE("the server is silent")
  {
    LeftoverFixture fixture("4s");
    const auto until = std::chrono::steady_clock::now() + 4s;
    fixture.server.stop_signal();
    wait_until_dead(fixture.leftover);
    CHECK(std::chrono::steady_clock::now() < until);
    fixture.server.cont();
    wait_until_dead(fixture.keeper);
  }
}

TEST_CASE("flock leftovers: killed when their guardian is killed, because no process is left to stop them in time")
{
  LeftoverFixture fixture("2s");
  const std::string children = "/proc/" + std::to_string(fixture.leftover) + "/stat";
  const std::string stat = text_of(children);
  const pid_t guardian = std::stoi(stat.substr(stat.rfind(") ") + 4));
  REQUIRE(guardian > 1);
  ::kill(guardian, SIGKILL);
  wait_until_dead(fixture.leftover);
  wait_until([&] { return !fixture.held(); }, "the lock is free", 5s);
}

TEST_CASE("flock leftovers: killed by the kernel when keeper and guardian are killed together")
{
  LeftoverFixture fixture;
  const std::string stat = text_of("/proc/" + std::to_string(fixture.leftover) + "/stat");
  const pid_t guardian = std::stoi(stat.substr(stat.rfind(") ") + 4));
  REQUIRE(guardian > 1);
  // The keeper is stopped first: between two kills it could see its guardian dead, kill the leftover and release.
  stop_process(fixture.keeper);
  ::kill(guardian, SIGKILL);
  ::kill(fixture.keeper, SIGKILL);
  wait_until_dead(fixture.leftover, 30s);
  CHECK(fixture.held());
}

TEST_CASE("flock leftovers: force-unlock reaches them")
{
  LeftoverFixture fixture;
  const Finished forced = rlock_on(fixture.server, {"force-unlock", "-k", "k", "--yes"});
  CHECK(forced.code == 0);
  CHECK_FALSE(is_alive(fixture.leftover));
  CHECK_FALSE(fixture.held());
}

TEST_CASE("flock leftovers: a process that closes the inherited descriptor leaves the lock, and lives on")
{
  LeftoverFixture fixture(
      "30s",
      "(until [ -e go ]; do sleep 0.02; done; eval exec \"$(seq -s' ' -f '%g>&-' 3 9)\"; "
      "exec python3 -c 'import os, time; os.closerange(3, 256); open(\"closed\", \"w\"); time.sleep(100)'"
      ") & echo $! >leftover");
  CHECK(fixture.held());
  fixture.flock.release_all();
  wait_until([&] { return !fixture.held(); }, "the lock is free");
  CHECK(is_alive(fixture.leftover));
  wait_until_dead(fixture.keeper);
  CHECK(is_alive(fixture.leftover));
}

TEST_CASE("flock leftovers: a daemon keeps the lock too, as with flock")
{
  LeftoverFixture fixture(
      "2s", "setsid sh -c 'echo $$ >leftover; exec sleep 100' & until [ -s leftover ]; do sleep 0.02; done");
  std::this_thread::sleep_for(3s);
  CHECK(fixture.held());
  ::kill(fixture.leftover, SIGKILL);
  wait_until([&] { return !fixture.held(); }, "the lock is free", 1s);
  wait_until_dead(fixture.keeper);
}

SERVER_CASE("flock leftovers: a reader of the caller's output does not wait for the keeper")
{
  const FlockFixture flock = rflock_fixture(server);
  Process script =
      flock.script(R"(said=$("$PROGRAM" "$LOCK" sh -c 'echo a; sleep 100 >/dev/null 2>&1 & echo $! >leftover' 2>&1)
                                   echo "[$said]")");
  expect_end(script, success, {out_is("[a]\n")}, 5s);
  CHECK_FALSE(flock.is_free());
  ::kill(pid_from(flock.dir() / "leftover"), SIGKILL);
  wait_until([&] { return flock.is_free(); }, "the lock is free");
}

TEST_CASE("flock leftovers: they let go of it themselves with -u, and live on")
{
  const std::string rflock = fs::path(RLOCK_BINARY).parent_path() / "rflock";
  LeftoverFixture fixture(
      "2s", "(until [ -e go ]; do sleep 0.02; done; " + rflock + " -u k; exec sleep 100) & echo $! >leftover");
  CHECK(fixture.held());
  fixture.flock.release_all();
  wait_until_dead(fixture.keeper);
  CHECK_FALSE(fixture.held());
  CHECK(is_alive(fixture.leftover));
}

SERVER_CASE("flock: TERM reaches the command, and its lock is released after it")
{
  const FlockFixture flock = rflock_fixture(server);
  Process holder =
      flock.start({}, {"sh", "-c", "trap 'echo told; exit 4' TERM; : >ready; while :; do sleep 0.02; done"});
  wait_until([&] { return fs::exists(flock.dir() / "ready"); }, "the command runs");
  holder.signal(SIGTERM);
  expect_end(holder, exited(4), {out_is("told\n")});
  CHECK(flock.is_free());
}

SERVER_CASE("flock: a lock that is lost while the command runs is 121, and said")
{
  const FlockFixture flock = rflock_fixture(server);
  Process holder = flock.start({"--ttl", "1s"}, {"sh", "-c", ": >ready; exec sleep 100"});
  wait_until([&] { return fs::exists(flock.dir() / "ready"); }, "the command runs");
  server.command({"DEL", "k"});
  expect_end(holder, exited(121), {err_begins("rflock: the lock k was lost: ")});
}

TEST_CASE("flock: without a server nothing is run")
{
  expect_end(run_rlock({"flock", "--server", "unix:///nowhere.sock", "k", "echo", "no"}), 69, {out_is("")});
}
