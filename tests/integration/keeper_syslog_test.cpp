// SPDX-License-Identifier: Apache-2.0
// A keeper has no stderr, so it reports the loss of its lock to syslog.
#include "support/integration.h"
#include "support/paths.h"
#include "support/script.h"
#include "support/skip.h"

#include <csignal>

using namespace rlock::test;

namespace {

struct Syslog {
  Syslog() { skip_with_address_sanitizer("a program with the address sanitizer cannot be preloaded"); }
  [[nodiscard]] ProcessOptions options() const
  {
    return {.env = {{"LD_PRELOAD", RLOCK_PRELOAD_SYSLOG}, {"RLOCK_TEST_SYSLOG", file.string()}}};
  }
  [[nodiscard]] std::string text() const { return text_of(file); }
  void await(const std::string& line) const
  {
    wait_until([&] { return has(text(), line); }, "syslog has: " + line, 30s);
  }

  const std::filesystem::path file = make_temp_dir("syslog") / "lines";
};

std::string acquire_line(const std::string& options)
{
  return R"(trap '' TERM; lock=$(rlock acquire -S "$URL" -k x --pid $$ )" + options +
         R"( --export) || exit; eval "$lock"; echo ready; while :; do sleep 0.02; done)";
}

const std::string user_error = "1 3 rlock: ";  // LOG_USER, LOG_ERR

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("keeper: a lock that another has by now is a line in syslog")
{
  for (const std::string on_lost : {"stop", "warn"}) {
    CAPTURE(on_lost);
    const RedisServer server;
    const Syslog syslog;
    Process holder = script(server, acquire_line("--ttl 2s --on-lost " + on_lost), syslog.options());
    keeper_of(server, holder);
    // At once, because a renewal in between would find it deleted.
    const std::string taken_over =
        "redis.call('DEL', 'x') redis.call('HSET', 'x', 'somebody:1', '1') redis.call('PEXPIRE', 'x', '60000')";
    server.command({"EVAL", taken_over, "1", "x"});
    syslog.await(user_error + "the lock x was lost: now held by somebody:1; it was held for process " +
                 std::to_string(holder.pid()) + "\n");
  }
}

SERVER_CASE("keeper: a lock that could not be renewed is a line in syslog with the reason")
{
  const Syslog syslog;
  Process holder = script(server, acquire_line("--ttl 3s"), syslog.options());
  keeper_of(server, holder);
  server.kill_hard();
  syslog.await(user_error + "the lock x was lost: no renewal for ");
}

SERVER_CASE("keeper: writes a forced unlock to syslog, but no release")
{
  const Syslog syslog;
  Process holder = script(server, acquire_line("--ttl 3s"), syslog.options());
  keeper_of(server, holder);
  Process forced = start_on(server, {"force-unlock", "-k", "x", "--yes", "--grace", "1s"});
  syslog.await(user_error + "the lock x was force-unlocked by ");
  forced.wait(30s);

  const Syslog other;
  Process released =
      script(server, R"(lock=$(rlock acquire -S "$URL" -k y --pid $$ --export) || exit; eval "$lock"; rlock release)",
             other.options());
  CHECK(released.wait(20s) == success);
  wait_until([&] { return as_int(server.command({"EXISTS", "y"})) == 0; }, "it is released");
  CHECK(other.text() == "");
}

TEST_CASE("keeper: a lock that is revoked is a line in syslog when its lease is over, although the script goes on")
{
  skip_on_quorum("the test reads the request of one server");
  skip_on_databases("the test reads the keys of Redis");
  const RedisServer server;
  const Syslog syslog;
  // Without --export no KILL follows.
  Process holder = script(server, R"(trap '' TERM; token=$(rlock acquire -S "$URL" -k x --pid $$ --ttl 9s) || exit
    echo ready; while :; do sleep 0.02; done)",
                          syslog.options());
  const pid_t keeper = keeper_of(server, holder);
  wait_until([&] { return listening(server) > 0; }, "the keeper listens");
  ::kill(keeper, SIGSTOP);
  Process forced = start_on(server, {"force-unlock", "-k", "x", "--yes", "--grace", "100ms"});
  wait_until([&] { return has(forced.err(), "x is revoked, its holder does not answer"); }, "it is revoked");
  ::kill(keeper, SIGCONT);
  syslog.await(user_error + "the lock x was force-unlocked by ");
  CHECK(holder.running());
  CHECK(forced.wait(30s) == success);
}

SERVER_CASE("keeper: a lock that is kept for what a flock command left is a line in syslog when it is lost")
{
  const Syslog syslog;
  Process front = start_on(server, {"flock", "--ttl", "2s", "x", "sh", "-c", "sleep 60 & true"}, syslog.options());
  CHECK(front.wait(20s) == success);
  server.command({"DEL", "x"});
  server.command({"HSET", "x", "somebody:1", "1"});
  server.command({"PEXPIRE", "x", "60000"});
  syslog.await(user_error + "the lock x was lost: ");
}

TEST_SUITE_END();
