// SPDX-License-Identifier: Apache-2.0
// rlock flock where flock(1) has nothing to show: what is left behind under a lock that can be lost.
#include "support/front.h"
#include "support/job_runner.h"
#include "support/paths.h"
#include "support/script.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

// A lock whose command is over, and one process that it left behind and that has it.
struct Estate {
  RedisServer server;
  Front front = rflock_on(server);
  pid_t heir = 0;
  pid_t keeper = 0;

  explicit Estate(const std::string& ttl = "30s", const std::string& how = "sleep 100 & echo $! >heir")
  {
    const Finished end = front.run({"--ttl", ttl}, {"sh", "-c", how});
    REQUIRE(end.code == 0);
    REQUIRE(end.err == "");
    heir = pid_from(front.dir() / "heir");
    wait_until([&] { return (keeper = keeper_pid()) != 0; }, "the keeper is there");
  }

  [[nodiscard]] bool held() const { return as_int(server.command({"EXISTS", "k"})) == 1; }
  [[nodiscard]] std::string owner() const { return as_texts(server.command({"HKEYS", "k"})).at(0); }

  [[nodiscard]] pid_t keeper_pid() const
  {
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      std::string name;
      std::getline(std::ifstream(entry.path() / "comm"), name);
      if (name != "rlock-keeper") {
        continue;
      }
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      const std::string environment{std::istreambuf_iterator<char>(file), {}};
      if (environment.find(server.url()) != std::string::npos) {
        return std::stoi(entry.path().filename());
      }
    }
    return 0;
  }

  ~Estate()
  {
    if (is_alive(heir)) {
      ::kill(heir, SIGKILL);
    }
  }
  Estate(const Estate&) = delete;
  Estate& operator=(const Estate&) = delete;
};

void wait_until_dead(pid_t pid, Millis timeout = 10s)
{
  wait_until([&] { return !is_alive(pid); }, "process " + std::to_string(pid) + " is dead", timeout);
}

}  // namespace

TEST_CASE("flock heirs: a keeper renews for as long as they live, and releases then")
{
  Estate estate("2s");
  REQUIRE(estate.keeper != 0);
  const std::string owner = estate.owner();
  const auto over = std::chrono::steady_clock::now() + 5s;
  while (std::chrono::steady_clock::now() < over) {
    REQUIRE(estate.held());
    REQUIRE(estate.owner() == owner);
    std::this_thread::sleep_for(10ms);
  }
  CHECK(is_alive(estate.heir));
  ::kill(estate.heir, SIGKILL);
  wait_until([&] { return !estate.held(); }, "the lock is free", 1s);
  wait_until_dead(estate.keeper);
}

TEST_CASE("flock heirs: when the lock is lost they are stopped")
{
  Estate estate("2s");
  estate.server.command({"DEL", "k"});
  wait_until_dead(estate.heir);
  wait_until_dead(estate.keeper);
  CHECK(as_int(estate.server.command({"EXISTS", "k"})) == 0);
}

TEST_CASE("flock heirs: dead before the lock could be another's, whatever became of the keeper")
{
  SUBCASE("killed")
  {
    Estate estate;
    ::kill(estate.keeper, SIGKILL);
    wait_until([&] { return !estate.held(); }, "the guardian has released the lock");
    CHECK_FALSE(is_alive(estate.heir));
  }
  SUBCASE("stopped")
  {
    Estate estate("2s");
    ::kill(estate.keeper, SIGSTOP);
    while (is_alive(estate.heir)) {
      REQUIRE(estate.held());
      std::this_thread::sleep_for(5ms);
    }
    ::kill(estate.keeper, SIGKILL);
  }
  SUBCASE("the server is silent")
  {
    Estate estate("4s");
    const auto until = std::chrono::steady_clock::now() + 4s;
    estate.server.stop_signal();
    wait_until_dead(estate.heir);
    CHECK(std::chrono::steady_clock::now() < until);
    estate.server.cont();
    wait_until_dead(estate.keeper);
  }
}

TEST_CASE("flock heirs: killed with their guardian's KILL, for want of anybody who would stop them in time")
{
  Estate estate("2s");
  const std::string children = "/proc/" + std::to_string(estate.heir) + "/stat";
  const std::string stat = contents(children);
  const pid_t guardian = std::stoi(stat.substr(stat.rfind(") ") + 4));
  REQUIRE(guardian > 1);
  ::kill(guardian, SIGKILL);
  wait_until_dead(estate.heir);
  wait_until([&] { return !estate.held(); }, "the lock is free", 5s);
}

TEST_CASE("flock heirs: killed by the kernel when keeper and guardian are killed together")
{
  Estate estate;
  const std::string stat = contents("/proc/" + std::to_string(estate.heir) + "/stat");
  const pid_t guardian = std::stoi(stat.substr(stat.rfind(") ") + 4));
  REQUIRE(guardian > 1);
  ::kill(guardian, SIGKILL);
  ::kill(estate.keeper, SIGKILL);
  wait_until_dead(estate.heir, 30s);
  CHECK(estate.held());
}

TEST_CASE("flock heirs: force-unlock reaches them")
{
  Estate estate;
  const Finished forced = run_rlock({"force-unlock", "-S", estate.server.url(), "-k", "k", "--yes"});
  CHECK(forced.code == 0);
  CHECK_FALSE(is_alive(estate.heir));
  CHECK_FALSE(estate.held());
}

TEST_CASE("flock heirs: one that closes what it inherited is under the lock no more, and lives on")
{
  Estate estate("30s",
                "(until [ -e go ]; do sleep 0.02; done; eval exec \"$(seq -s' ' -f '%g>&-' 3 9)\"; "
                "exec python3 -c 'import os, time; os.closerange(3, 256); open(\"closed\", \"w\"); time.sleep(100)'"
                ") & echo $! >heir");
  CHECK(estate.held());
  estate.front.release_all();
  wait_until([&] { return !estate.held(); }, "the lock is free");
  CHECK(is_alive(estate.heir));
  wait_until_dead(estate.keeper);
  CHECK(is_alive(estate.heir));
}

TEST_CASE("flock heirs: a daemon keeps the lock too, as with flock")
{
  Estate estate("2s", "setsid sh -c 'echo $$ >heir; exec sleep 100' & until [ -s heir ]; do sleep 0.02; done");
  std::this_thread::sleep_for(3s);
  CHECK(estate.held());
  ::kill(estate.heir, SIGKILL);
  wait_until([&] { return !estate.held(); }, "the lock is free", 1s);
  wait_until_dead(estate.keeper);
}

TEST_CASE("flock heirs: nobody who waits for the caller's output waits for the keeper")
{
  const RedisServer server;
  const Front front = rflock_on(server);
  Process script =
      front.script(R"(said=$("$FRONT" "$LOCK" sh -c 'echo a; sleep 100 >/dev/null 2>&1 & echo $! >heir' 2>&1)
                                   echo "[$said]")");
  CHECK(script.wait(5s) == Exit{.code = 0, .signal = 0});
  CHECK(script.out() == "[a]\n");
  CHECK_FALSE(front.is_free());
  ::kill(pid_from(front.dir() / "heir"), SIGKILL);
  wait_until([&] { return front.is_free(); }, "the lock is free");
}

TEST_CASE("flock heirs: they let go of it themselves with -u, and live on")
{
  const std::string rflock = fs::path(RLOCK_BINARY).parent_path() / "rflock";
  Estate estate("2s", "(until [ -e go ]; do sleep 0.02; done; " + rflock + " -u k; exec sleep 100) & echo $! >heir");
  CHECK(estate.held());
  estate.front.release_all();
  wait_until_dead(estate.keeper);
  CHECK_FALSE(estate.held());
  CHECK(is_alive(estate.heir));
}

TEST_CASE("flock: TERM reaches the command, and its lock is released after it")
{
  const RedisServer server;
  const Front front = rflock_on(server);
  Process holder =
      front.start({}, {"sh", "-c", "trap 'echo told; exit 4' TERM; : >ready; while :; do sleep 0.02; done"});
  wait_until([&] { return fs::exists(front.dir() / "ready"); }, "the command runs");
  holder.signal(SIGTERM);
  CHECK(holder.wait() == Exit{.code = 4, .signal = 0});
  CHECK(holder.out() == "told\n");
  CHECK(front.is_free());
}

TEST_CASE("flock: a lock that is lost while the command runs is 121, and said")
{
  const RedisServer server;
  const Front front = rflock_on(server);
  Process holder = front.start({"--ttl", "1s"}, {"sh", "-c", ": >ready; exec sleep 100"});
  wait_until([&] { return fs::exists(front.dir() / "ready"); }, "the command runs");
  server.command({"DEL", "k"});
  CHECK(holder.wait() == Exit{.code = 121, .signal = 0});
  CHECK(holder.err().starts_with("rflock: the lock k was lost: "));
}

TEST_CASE("flock: without a server nothing is run")
{
  const Finished end = run_rlock({"flock", "--server", "unix:///nowhere.sock", "k", "echo", "no"});
  CHECK(end.code == 69);
  CHECK(end.out == "");
}
