// SPDX-License-Identifier: Apache-2.0
// The keeper of `rlock acquire --pid`: the lock lasts as long as the script, and the script is told of a loss. Over 300
// lines: every case needs the scripts at the top.
#include "redis/redis_store.h"
#include "redis/transport.h"
#include "run/release_socket.h"
#include "support/activity_log.h"
#include "support/integration.h"
#include "support/script.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

// A script that takes x with these options and prints "ready". On TERM it prints the time, and ends with 7.
std::string acquire_line(const std::string& options)
{
  return R"(trap 'date +"told %s%N"; exit 7' TERM
            lock=$(rlock acquire -S "$URL" -k x )" +
         options + R"( --export) || exit; eval "$lock"; echo ready; )";
}
const std::string work = "while :; do sleep 0.02; done";
const std::string work_until_go = "while [ ! -e go ]; do sleep 0.02; done; echo finished";

std::string owner(const RedisServer& server) { return as_texts(server.command({"HKEYS", "x"})).at(0); }

void wait_for_release(const RedisServer& server)
{
  wait_until([&] { return !is_held(server, "x"); }, "x is free", 5s);
}

bool belongs_to_another(const RedisServer& server)
{
  return as_int(server.command({"HLEN", "x"})) == 1 && owner(server) == "somebody:1" &&
         as_int(server.command({"PTTL", "x"})) > 50'000;
}

// `strike`: what becomes of the lock. `holds`: afterwards. `is_queued`: the server still has the keeper in its queue.
void told_of_loss(bool is_queued, void (*strike)(const RedisServer&), bool (*holds)(const RedisServer&))
{
  const RedisServer server;
  Process holder = script(server, acquire_line("--pid $$ --ttl 3s") + work);
  keeper_of(server, holder);
  if (is_queued) {
    server.command({"ZADD", "rlock:queue:{x}", "1", owner(server)});
  }
  strike(server);
  CHECK(holder.wait(5s) == exited(7));
  wait_for_end(server);
  CHECK(holds(server));
}

}  // namespace

TEST_SUITE_BEGIN("topology");

SERVER_CASE("keeper: a script killed by kill -9 has released its lock long before the lease is over")
{
  Process holder = script(server, acquire_line("--pid $$") + work);
  keeper_of(server, holder);
  CHECK(as_int(server.command({"PTTL", "x"})) > 25'000);
  holder.signal(SIGKILL);
  wait_for_release(server);
  wait_for_end(server);
}

SERVER_CASE("keeper: it renews while a release is announced and not sent, and releases when the announcer is gone")
{
  Process holder = script(server, acquire_line("--pid $$ --ttl 1s") + work);
  keeper_of(server, holder);
  const std::string token = owner(server);
  Fd announced = announce_release(Hold(Owner::of(token)));  // as an rlock release that is stopped then
  REQUIRE(announced);
  const auto over = std::chrono::steady_clock::now() + 3s;  // three ttls
  while (std::chrono::steady_clock::now() < over) {
    REQUIRE(as_texts(server.command({"HKEYS", "x"})) == Words{token});
    std::this_thread::sleep_for(10ms);
  }
  announced.reset();
  wait_for_release(server);
  wait_for_end(server);
  CHECK(holder.running());
}

TEST_CASE("keeper: a lock that another has by now is told to the script, and let alone")
{
  told_of_loss(false, give_to_another, belongs_to_another);
}

// A fail-over may lose the grant, and not the place that the holder had in line before.
TEST_CASE("keeper: a lock that another has by now is told to a script that the server still has in its queue")
{
  told_of_loss(true, give_to_another, belongs_to_another);
}

// Then the server hands the free lock over to that place, and the release that tells how the lock was lost succeeds.
TEST_CASE("keeper: a lock that was deleted is told to a script that the server still has in its queue")
{
  told_of_loss(
      true,
      [](const RedisServer& server) {
        server.command({"DEL", "x"});
      },
      [](const RedisServer& server) { return !is_held(server, "x"); });
}

SERVER_CASE("keeper: a lock that was deleted is told at once, if the news of it gets through")
{
  Process holder = script(server, acquire_line("--pid $$ --signal USR1") + work);
  keeper_of(server, holder);
  wait_until([&] { return listening(server) > 0; }, "the keeper listens");
  server.command({"DEL", "x"});
  server.command({"PUBLISH", "redisson_lock__channel:{x}", "0"});
  CHECK(holder.wait(3s) == died_of(SIGUSR1));  // a third of the ttl would be 10 s
}

SERVER_CASE("keeper: --on-lost warn says nothing, and check does")
{
  const fs::path dir = make_temp_dir("script");
  Process holder =
      script(server, acquire_line("--pid $$ --ttl 3s --on-lost warn") + work_until_go + "; rlock check; echo $?",
             {.cwd = dir});
  keeper_of(server, holder);
  give_to_another(server);
  wait_for_end(server);
  std::ofstream(dir / "go") << "";
  CHECK(holder.wait() == success);
  CHECK(holder.out() == "ready\nfinished\n1\n");
  CHECK(holder.err() == "rlock: the lock x is not held under this token: now held by somebody:1\n");
}

TEST_CASE("keeper: a silent server is told before the lease ends, whether killed or stopped")
{
  for (const bool killed : {true, false}) {
    CAPTURE(killed);
    RedisServer server;
    Process holder = script(server, acquire_line("--pid $$ --ttl 4s") + work);
    keeper_of(server, holder);
    std::this_thread::sleep_for(2s);  // some renewals later
    const std::int64_t struck = now_ns();
    killed ? server.kill_hard() : server.stop_signal();
    CHECK(holder.wait() == exited(7));
    const std::string said = holder.out();
    const std::int64_t told = std::stoll(said.substr(said.find("told ") + 5));
    CHECK((told - struck) / 1'000'000 < 4000);
    CHECK((told - struck) / 1'000'000 > 1333);  // not before renewals have failed for a while
    server.cont();
    wait_for_end(server);
  }
}

SERVER_CASE("keeper: what the script releases is not lost: no signal, and the keeper is gone")
{
  const fs::path dir = make_temp_dir("script");
  Process holder = script(
      server, acquire_line("--pid $$ --ttl 900ms") + "rlock release && echo released; " + work_until_go, {.cwd = dir});
  wait_until([&] { return has(holder.out(), "released"); }, "the script releases");
  wait_for_end(server);
  CHECK_FALSE(is_held(server, "x"));
  std::this_thread::sleep_for(1s);
  std::ofstream(dir / "go") << "";
  expect_end(holder, success, {out_is("ready\nreleased\nfinished\n"), err_is("")});
}

SERVER_CASE("keeper: nor is it lost when the keeper was stopped meanwhile and the server remembers nothing")
{
  const fs::path dir = make_temp_dir("script");
  Process holder =
      script(server,
             acquire_line("--pid $$ --ttl 3s") +
                 "while [ ! -e let-go ]; do sleep 0.02; done; rlock release; echo released; " + work_until_go,
             {.cwd = dir});
  const pid_t keeper = keeper_of(server, holder);
  ::kill(keeper, SIGSTOP);
  std::ofstream(dir / "let-go") << "";
  wait_until([&] { return has(holder.out(), "released"); }, "the script releases");
  server.command({"FLUSHALL"});
  give_to_another(server);
  std::this_thread::sleep_for(3100ms);  // its lease is over when it continues
  ::kill(keeper, SIGCONT);
  wait_for_end(server);
  std::ofstream(dir / "go") << "";
  expect_end(holder, success, {out_is("ready\nreleased\nfinished\n")});
  CHECK(belongs_to_another(server));
}

TEST_CASE("keeper: a release from another host, which announces nothing on this host, is no loss either")
{
  skip_on_quorum("the other host of this test knows one server");
  skip_on_databases("the other host of this test knows Redis only");
  const RedisServer server;
  const fs::path dir = make_temp_dir("script");
  Process holder = script(server, acquire_line("--pid $$ --ttl 3s") + work_until_go, {.cwd = dir});
  keeper_of(server, holder);

  const BootClock clock;
  RedisStore elsewhere(std::make_unique<Direct>(*parse_url(server.direct_url()), clock), clock);
  const LockSpec spec{.name = *LockName::parse("x"), .kind = Plain{}, .ttl = 0ms, .who = {}, .once = {}};
  const auto released =
      elsewhere.release(spec, Owner::of(owner(server)), {}, {.deadline = clock.now() + 5s, .stop = StopToken::never()});
  REQUIRE(released);
  REQUIRE(std::holds_alternative<Released>(*released));
  wait_for_end(server);
  std::ofstream(dir / "go") << "";
  CHECK(holder.wait() == success);
}

SERVER_CASE("keeper: a script that releases and takes it again is not disturbed by the first keeper")
{
  const std::string round = R"(lock=$(rlock acquire -S "$URL" -k x -w 5s --pid $$ --ttl 3s --export) || exit 1
                               eval "$lock"; rlock check || exit 2; rlock release || exit 3; )";
  Process holder = script(server, "for i in 1 2 3 4 5 6 7 8 9 10; do " + round + "done; sleep 0.5; echo done");
  expect_end(holder, success, {out_is("done\n")}, 20s);
  wait_for_end(server);
}

SERVER_CASE("keeper: it holds nothing of its caller's, and is out of reach of its terminal")
{
  const fs::path dir = make_temp_dir("script");
  Process holder = script(server, "exec 5>kept 6<&5; " + acquire_line("--pid $$") + work, {.cwd = dir});
  const pid_t keeper = keeper_of(server, holder);  // ready: $(...) has returned while the keeper lives
  CHECK(::getsid(keeper) == keeper);
  const fs::path proc = "/proc/" + std::to_string(keeper);
  const fs::path own_pipe = fs::read_symlink("/proc/" + std::to_string(holder.pid()) + "/fd/9");
  CHECK(fs::read_symlink(proc / "cwd") == "/");
  for (const fs::directory_entry& fd : fs::directory_iterator(proc / "fd")) {
    std::error_code is_closed;  // meanwhile
    const std::string target = fs::read_symlink(fd.path(), is_closed);
    CAPTURE(target);
    const bool standard = std::stoi(fd.path().filename()) <= 2;
    // A listener on a database has a descriptor that is always readable.
    CHECK((target == "/dev/null" ? standard || topology_kind() == TopologyKind::database
                                 : is_closed || target.starts_with("socket:") || target.starts_with("anon_inode:") ||
                                       target == own_pipe));
  }
  CHECK(fs::exists(dir / "kept"));
}

SERVER_CASE("keeper: told to end, it tells the script, and keeps the lock until that has cleared up")
{
  Process holder = script(server,
                          R"(lock=$(rlock acquire -S "$URL" -k x --pid $$ --ttl 3s --export) || exit; eval "$lock"
                             trap 'sleep 3.5; rlock check && echo still ours; exit 0' TERM; echo ready; )" +
                              work);
  const pid_t keeper = keeper_of(server, holder);
  ::kill(keeper, SIGHUP);
  ::kill(keeper, SIGTERM);
  expect_end(holder, success, {out_is("ready\nstill ours\n")});
  wait_for_release(server);
  wait_for_end(server);
}

SERVER_CASE("keeper: told to end, with --on-lost warn it releases and leaves the script alone")
{
  Process holder = script(server, acquire_line("--pid $$ --on-lost warn") + work);
  ::kill(keeper_of(server, holder), SIGTERM);
  wait_for_release(server);
  wait_for_end(server);
  CHECK(holder.running());
}

SERVER_CASE("keeper: force-unlock reaches the script, and no other job overlaps with its end")
{
  Process holder = script(server,
                          R"(lock=$(rlock acquire -S "$URL" -k x --pid $$ --export) || exit; eval "$lock"
                             trap 'sleep 0.5; rlock check -q && echo still ours; exit 0' TERM; echo ready; )" +
                              work);
  keeper_of(server, holder);
  expect_end(rlock_on(server, {"force-unlock", "-k", "x", "--yes"}), 0,
             {out_has("released by "), err_has("(pid " + std::to_string(holder.pid()) + ")")});
  expect_end(holder, success, {out_is("ready\nstill ours\n")});
  wait_for_end(server);
}

SERVER_CASE("keeper: a script without --export keeps its lock, too, for as long as it cleans up for force-unlock")
{
  Process holder = script(server,
                          R"(token=$(rlock acquire -S "$URL" -k x --pid $$ --ttl 1s) || exit
                             trap 'sleep 3; rlock check -q -S "$URL" -k x --token "$token" && echo still ours; exit 0' TERM
                             echo ready; )" +
                              work);
  keeper_of(server, holder);
  expect_end(rlock_on(server, {"force-unlock", "-k", "x", "--yes"}), 0, {out_has("released by ")});
  expect_end(holder, success, {out_is("ready\nstill ours\n")});
  wait_for_end(server);
}

SERVER_CASE("keeper: it does not end when a release names another key")
{
  Process holder = script(server, acquire_line("--pid $$ --ttl 1s") + work);
  keeper_of(server, holder);
  CHECK(rlock_on(server, {"release", "-k", "other", "--token", owner(server)}).code == 1);
  for (int renewals = 0; renewals < 2; ++renewals) {
    auto left = as_int(server.command({"PTTL", "x"}));
    wait_until([&] { return std::exchange(left, as_int(server.command({"PTTL", "x"}))) < left; }, "the keeper renews");
  }
  CHECK(holder.running());
}

TEST_CASE("keeper: nor when that key has more readers than a status names")
{
  skip_on_quorum("the readers are many processes");
  skip_on_databases("the readers are many processes");
  const RedisServer server;
  Process holder = script(server, acquire_line("--pid $$ --ttl 1s") + work);
  keeper_of(server, holder);
  for (int readers = 0; readers < 70; ++readers) {
    REQUIRE(rlock_on(server, {"acquire", "-k", "other", "-s", "--lease", "60s"}).code == 0);
  }
  CHECK(rlock_on(server, {"release", "-k", "other", "--token", owner(server)}).code == 1);
  std::this_thread::sleep_for(500ms);  // a keeper that is told releases at once
  CHECK(is_held(server, "x"));
  CHECK(holder.running());
}

SERVER_CASE("keeper: a caller that was killed before it had its token has no lock")
{
  const fs::path pipe = make_temp_dir("script") / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int brim = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const std::string much(4096, 'x');
  while (::write(brim, much.data(), much.size()) > 0) {
  }
  Process caller = script(server, "exec rlock acquire -S \"$URL\" -k x --pid $PPID >" + pipe.string());
  wait_until([&] { return keepers(server).size() == 1; }, "the keeper has the lock, and acquire cannot say so");
  CHECK(is_held(server, "x"));
  std::this_thread::sleep_for(100ms);
  CHECK(is_held(server, "x"));
  caller.signal(SIGKILL);
  wait_for_release(server);
  wait_for_end(server);
  ::close(brim);
}

TEST_SUITE_END();
