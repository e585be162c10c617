// SPDX-License-Identifier: Apache-2.0
// What a script has started under a lock of `rlock acquire --pid $$ --export`: the lock is not free while it lives. Over 300 lines:
// every case needs the scripts at the top.
#include <array>
#include <csignal>
#include "process/process_tree.h"
#include "support/integration.h"
#include "support/script.h"

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

// Takes the lock. The script cannot know the number of the pipe.
std::string take(const std::string& options = "")
{
  return R"(lock=$(rlock acquire -S "$URL" -k x --pid $$ )" + options + R"( --export) || exit; eval "$lock"; )";
}

// Programs of the script: they write their pid to the file `child` when they work, and then work until they are killed.
const std::string works = "./works";
const std::string works_on = "./works_on";  // ignores TERM

const std::string ready = "while [ ! -e child ]; do sleep 0.02; done; echo ready; ";
const std::string until_go = "while [ ! -e go ]; do sleep 0.02; done; ";
const std::string idle = "while :; do sleep 0.02; done";
const std::string stubborn = "trap '' TERM; ";

void write_program(const fs::path& path, const std::string& first)
{
  std::ofstream(path) << "#!/bin/sh\n" << first << "echo $$ >child.new; mv child.new child\n" << idle << "\n";
  fs::permissions(path, fs::perms::owner_all);
}

// A script with one child, which has the lock when this is made.
class Script {
 public:
  Script(const RedisServer& server, const std::string& text, const std::string& shell = "bash")
      : m_dir(programs()),
        m_server(server),
        process(script(server, "exec " + shell + " ./text", {.cwd = written(text)}))
  {
    wait_until([&] { return has(process.out(), "ready"); }, "the script has its lock; it says " + process.err());
    std::ifstream(m_dir / "child") >> child;
    REQUIRE(child > 0);
  }
  ~Script()
  {
    for (const pid_t pid : {child, process.pid()}) {
      if (pid > 0) {
        ::kill(pid, SIGKILL);
      }
    }
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  [[nodiscard]] const fs::path& directory() const { return m_dir; }
  void go() const { std::ofstream(m_dir / "go") << ""; }

  [[nodiscard]] pid_t keeper() const
  {
    wait_until([&] { return keepers(m_server).size() == 1; }, "there is one keeper");
    return keepers(m_server).front();
  }

 private:
  static fs::path programs()
  {
    fs::path dir = make_temp_dir("script");
    write_program(dir / "works", "");
    write_program(dir / "works_on", "trap '' TERM; ");
    return dir;
  }
  [[nodiscard]] fs::path written(const std::string& text) const
  {
    std::ofstream(m_dir / "text") << text << "\n";
    return m_dir;
  }

  const fs::path m_dir;
  const RedisServer& m_server;

 public:
  Process process;
  pid_t child = 0;
};

// An orphan that nobody has reaped is dead.
bool is_alive(pid_t pid)
{
  const auto found = rlock::read_process(pid);
  return found && !found->is_zombie();
}

// Takes the lock when it is free, and says whether one of the processes lives then.
Process next_job(const RedisServer& server, const std::vector<pid_t>& pids)
{
  std::string job;
  for (const pid_t pid : pids) {
    job += "grep -q '^State:.[RSDT]' /proc/" + std::to_string(pid) + "/status 2>/dev/null && echo overlap; ";
  }
  return start_run(server.url(), {"-k", "x"}, {"sh", "-c", job + "echo alone"});
}

void expect_alone(Process& next) { expect_end(next, success, {out_is("alone\n")}, 20s); }

// After the script was killed.
void expect_child_ends_first(const RedisServer& server, const Script& holder)
{
  Process next = next_job(server, {holder.child});
  holder.process.signal(SIGKILL);
  expect_alone(next);
}

void expect_free_and_alive(const RedisServer& server, const Script& holder)
{
  wait_for_end(server);
  CHECK_FALSE(is_held(server, "x"));
  CHECK(is_alive(holder.child));
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("keeper: a child of a script that was killed is stopped before another has the lock")
{
  struct Row {
    const char* shell;
    std::string child;
    int signal;
  };
  const std::array rows{Row{"bash", works, SIGTERM}, Row{"dash", works, SIGKILL}, Row{"dash", works_on, SIGTERM},
                        Row{"bash", works_on, SIGKILL}};
  for (const Row& row : rows) {
    CAPTURE(row.shell);
    CAPTURE(row.signal);
    const RedisServer server;
    Script holder(server, take("--kill-after 300ms") + row.child + " & " + ready + idle, row.shell);
    Process next = next_job(server, {holder.process.pid(), holder.child});
    holder.process.signal(row.signal);
    expect_alone(next);
    CHECK_FALSE(is_alive(holder.child));
    wait_for_end(server);
  }
}

SERVER_CASE("keeper: a child in the foreground of a script that was killed is stopped before another has the lock")
{
  Script holder(server, take() + "(" + ready + ") & " + works + "; echo never");
  expect_child_ends_first(server, holder);
}

SERVER_CASE("keeper: children of a script that ends by itself are stopped, and its end is what counts")
{
  Script holder(server, take() + works + " & " + ready + until_go + "exit 3");
  Process next = next_job(server, {holder.child});
  holder.go();
  CHECK(holder.process.wait() == exited(3));
  expect_alone(next);
}

SERVER_CASE("keeper: --leftovers wait renews the lock until the children have ended")
{
  Script holder(server, take("--leftovers wait --ttl 1s") + works + " & " + ready);
  CHECK(holder.process.wait() == success);
  std::this_thread::sleep_for(1500ms);  // more than the ttl
  CHECK(is_alive(holder.child));
  CHECK(is_held(server, "x"));
  Process next = next_job(server, {holder.child});
  ::kill(holder.child, SIGKILL);
  expect_alone(next);
  wait_for_end(server);
}

SERVER_CASE("keeper: --leftovers leave releases when the script has ended, and leaves its children alone")
{
  Script holder(server, take("--leftovers leave") + works + " & " + ready);
  CHECK(holder.process.wait() == success);
  expect_free_and_alive(server, holder);
}

SERVER_CASE("keeper: without --export only the script is watched")
{
  Script holder(server, R"(rlock acquire -S "$URL" -k x --pid $$ >/dev/null; )" + works + " & " + ready);
  CHECK(holder.process.wait() == success);
  expect_free_and_alive(server, holder);
}

SERVER_CASE("keeper: release by the script is at once, whatever still runs")
{
  Script holder(server, take() + works + " & " + ready + "rlock release; echo released; " + idle);
  wait_until([&] { return has(holder.process.out(), "released"); }, "the script releases");
  CHECK_FALSE(is_held(server, "x"));
  wait_for_end(server);
  CHECK(is_alive(holder.child));
  CHECK(holder.process.running());
}

SERVER_CASE("keeper: release by a child that outlives the script is at once")
{
  Script holder(server, take("--leftovers wait") + "(" + until_go + "rlock release) & " + works + " & " + ready);
  CHECK(holder.process.wait() == success);
  holder.go();
  expect_free_and_alive(server, holder);
}

SERVER_CASE("keeper: a daemon that the script has started is spared, and the lock is free")
{
  Script holder(server, take() + "(setsid " + works_on + " >/dev/null 2>&1 &); " + ready + idle);
  wait_until([&] { return ::getsid(holder.child) == holder.child; }, "the daemon has a session of its own");
  holder.process.signal(SIGTERM);
  expect_free_and_alive(server, holder);
}

SERVER_CASE("keeper: a process in a session of its own whose parent is in the script belongs to the script")
{
  Script holder(server, take() + "sh -c 'setsid -w ./works; :' & " + ready + idle);
  expect_child_ends_first(server, holder);
}

TEST_CASE("keeper: force-unlock stops the script and its children before another has the lock")
{
  for (const std::string shell : {"bash", "dash"}) {
    CAPTURE(shell);
    const RedisServer server;
    Script holder(server, stubborn + take("--kill-after 300ms") + works_on + " & " + ready + idle, shell);
    Process next = next_job(server, {holder.process.pid(), holder.child});
    expect_end(rlock_on(server, {"force-unlock", "-k", "x", "--yes"}), 0, {out_has("released by ")});
    expect_alone(next);
    CHECK(holder.process.wait() == died_of(SIGKILL));
    wait_for_end(server);
  }
}

SERVER_CASE("keeper: force-unlock reaches a child that has closed the pipe, while its parents live")
{
  Script holder(server, stubborn + take("--kill-after 300ms") + "sh -c 'exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; " +
                            "setsid -w ./works; :' & " + ready + idle);
  Process next = next_job(server, {holder.process.pid(), holder.child});
  CHECK(rlock_on(server, {"force-unlock", "-k", "x", "--yes"}).code == 0);
  expect_alone(next);
}

SERVER_CASE("keeper: a lock that another has by now ends the script and its children within a second")
{
  Script holder(server, stubborn + take() + works_on + " & " + ready + idle);
  wait_until([&] { return listening(server) > 0; }, "the keeper listens");
  give_to_another(server);
  server.command({"PUBLISH", "redisson_lock__channel:{x}", "0"});
  const auto lost = std::chrono::steady_clock::now();
  CHECK(holder.process.wait() == died_of(SIGKILL));
  wait_until([&] { return !is_alive(holder.child); }, "the child is dead");
  CHECK(std::chrono::steady_clock::now() - lost < 2s);
  wait_for_end(server);
}

SERVER_CASE("keeper: a lock that is lost after the script has ended ends its children")
{
  Script holder(server, take("--leftovers wait --ttl 3s") + works_on + " & " + ready);
  CHECK(holder.process.wait() == success);
  give_to_another(server);
  wait_until([&] { return !is_alive(holder.child); }, "the child is dead", 5s);
  wait_for_end(server);
}

TEST_CASE("keeper: a silent server ends the script and its children before the lease ends")
{
  for (const bool killed : {true, false}) {
    CAPTURE(killed);
    RedisServer server;
    Script holder(server, stubborn + take("--ttl 3s") + works_on + " & " + ready + idle);
    const auto struck = std::chrono::steady_clock::now();
    killed ? server.kill_hard() : server.stop_signal();
    CHECK(holder.process.wait() == died_of(SIGKILL));
    wait_until([&] { return !is_alive(holder.child); }, "the child is dead");
    CHECK(std::chrono::steady_clock::now() - struck < 3s);
    server.cont();
    wait_for_end(server);
  }
}

SERVER_CASE("keeper: --on-lost warn signals neither the script nor its children")
{
  Script holder(server, take("--ttl 1s --on-lost warn") + works + " & " + ready + idle);
  give_to_another(server);
  wait_for_end(server);
  CHECK(holder.process.running());
  CHECK(is_alive(holder.child));
}

SERVER_CASE("keeper: told to end, it keeps the lock until the children have ended, too")
{
  Script holder(server, take() + works + " & " + ready + idle);
  Process next = next_job(server, {holder.process.pid(), holder.child});
  ::kill(holder.keeper(), SIGTERM);
  expect_alone(next);
}

SERVER_CASE("keeper: a keeper that was killed protects nothing")
{
  Script holder(server, take("--ttl 1s") + works + " & " + ready + idle);
  ::kill(holder.keeper(), SIGKILL);
  wait_until([&] { return !is_held(server, "x"); }, "the lease is over");
  CHECK(holder.process.running());
  CHECK(is_alive(holder.child));
}

SERVER_CASE("keeper: a script with two locks loses one of them, and both are free when its children are dead")
{
  Script holder(server, take("--kill-after 300ms") +
                            R"(other=$(rlock acquire -S "$URL" -k y --pid $$ --export) || exit; eval "$other"; )" +
                            works_on +
                            " & while [ ! -e child ]; do sleep 0.02; done; rlock release -k y; echo ready; " + idle);
  Process next = next_job(server, {holder.process.pid(), holder.child});
  holder.process.signal(SIGTERM);
  expect_alone(next);
}

TEST_CASE("keeper: a script that releases and takes again needs no more descriptors, and may have noclobber")
{
  for (const std::string shell : {"bash", "dash"}) {
    CAPTURE(shell);
    const RedisServer server;
    Script holder(server,
                  "set -euC; for i in 1 2 3 4 5 6 7 8 9 10; do " + take("-w 5s") + "rlock release; done; " +
                      take("-w 5s") + works + " & " + ready + "set +C; " + idle,
                  shell);
    CHECK(holder.process.complaints() == "");
    expect_child_ends_first(server, holder);
  }
}

SERVER_CASE("keeper: the descriptor is free in the shell that evaluates the lines, too, where that is not the script")
{
  Script holder(server, R"(bash -c 'exec 9>kept 8>&9; lock=$(rlock acquire -S "$URL" -k x --pid $PPID --export) || exit
                                    eval "$lock"; echo mine >&9; ./works & while [ ! -e child ]; do sleep 0.02; done'
                           echo ready; )" +
                            until_go);
  CHECK(text_of(holder.directory() / "kept") == "mine\n");
  expect_child_ends_first(server, holder);
}

SERVER_CASE("keeper: what a child writes to the pipe is let alone")
{
  Script holder(server, take("--leftovers wait") + "for i in 1 2 3; do echo noise >&9; done; " + works + " & " + ready);
  CHECK(holder.process.wait() == success);
  const auto used = [&] {
    std::istringstream stat(text_of("/proc/" + std::to_string(holder.keeper()) + "/stat"));
    std::string word;
    long ticks = 0;
    for (int i = 1; i <= 15 && stat >> word; ++i) {
      ticks += i == 14 || i == 15 ? std::stol(word) : 0;
    }
    return ticks;
  };
  const long before = used();
  std::this_thread::sleep_for(1s);
  CHECK(used() - before < 40);  // of 100 in a second
  ::kill(holder.child, SIGKILL);
  wait_for_end(server);
}

SERVER_CASE("keeper: a script without a free descriptor is told that only it is watched")
{
  Script holder(server, "exec 3<&0 4<&0 5<&0 6<&0 7<&0 8<&0 9<&0; " + take() + works + " & " + ready);
  CHECK(has(holder.process.err(), "only the script itself is watched"));
  CHECK(holder.process.wait() == success);
  wait_for_end(server);
  CHECK(is_alive(holder.child));
}

TEST_SUITE_END();
