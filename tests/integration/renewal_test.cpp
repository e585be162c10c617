// SPDX-License-Identifier: Apache-2.0
// A lock lasts as long as its job, also through outages that are shorter than the lease allows.
#include "redis/subscription.h"
#include "support/integration.h"
#include "support/presences.h"
#include "support/skip.h"

#include <array>

using namespace rlock::test;

namespace {

Process job_of(const RedisServer& server, const std::string& seconds, const std::string& ttl = "1s")
{
  return start_on(server, {"run", "-k", "stock", "--ttl", ttl, "--", "sleep", seconds});
}

std::int64_t pttl(const RedisServer& server) { return as_int(server.command({"PTTL", "stock"})); }

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("renewal: a job of two ttls and more keeps its lock, and its end is announced")
{
  skip_on_databases("no Redis announces the end to foreign clients");
  const RedisServer server;
  const BootClock clock;
  const std::array<std::string_view, 1> channels{"redisson_lock__channel:{stock}"};
  auto ear = Subscription::open(*parse_url(server.direct_url()), channels, clock,
                                {.deadline = clock.now() + 5s, .stop = StopToken::never()});
  REQUIRE(ear);

  Process job = job_of(server, "9", "4s");
  wait_until([&] { return is_held(server, "stock"); }, "the lock is taken");
  std::int64_t least = 4000;
  while (job.running()) {
    const std::int64_t left = pttl(server);
    if (is_held(server, "stock")) {  // the job may have ended in between
      least = std::min(least, left);
    }
    std::this_thread::sleep_for(5ms);
  }
  CHECK(least > 2000);
  CHECK(job.wait() == success);
  CHECK_FALSE(is_held(server, "stock"));
  CHECK(job.err() == "");

  const auto said = ear->next({.deadline = clock.now() + 5s, .stop = StopToken::never()});
  REQUIRE(said);
  REQUIRE(*said);
  CHECK((*said)->text == "0");
}

SERVER_CASE("renewal: a server that is silent for 0.45 ttl from the worst moment on is not noticed")
{
  Process job = job_of(server, "5", "2s");
  wait_until([&] { return is_held(server, "stock"); }, "the lock is taken");
  for (int round = 0; round < 2; ++round) {
    if (ends_holds_with_clients()) {  // no client but the holder knows the last renewal: some moment
      std::this_thread::sleep_for(1700ms);
    } else {
      wait_until([&] { return pttl(server) > 1900; }, "a renewal went through");
      wait_until([&] { return pttl(server) < 1400; }, "the next renewal is near");
    }
    server.stop_signal();
    std::this_thread::sleep_for(900ms);
    server.cont();
  }
  expect_end(job, success, {err_is("")}, 15s);
}

TEST_CASE("renewal: a server that is gone for 0.45 ttl and comes back with its file costs no lock")
{
  skip_on({TopologyKind::cluster}, "a node serves no client for its first two seconds");
  RedisServer server({.args = {"--appendonly", "yes", "--appendfsync", "always"}});
  Process job = job_of(server, "4", "3s");
  wait_until([&] { return is_held(server, "stock"); }, "the lock is taken");
  wait_until([&] { return pttl(server) < 2100; }, "the next renewal is near");
  server.kill_hard();
  std::this_thread::sleep_for(1000ms);
  server.restart();
  CHECK(job.wait(15s) == success);
  CHECK_FALSE(has(job.err(), "lost"));  // failing renewals are reported after a second
}

SERVER_CASE("renewal: connections cut by the server are made again")
{
  Process job = job_of(server, "4", "2s");
  wait_until([&] { return is_held(server, "stock"); }, "the lock is taken");
  while (job.running()) {
    server.command({"CLIENT", "KILL", "TYPE", "normal"});
    server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
    server.command({"SCRIPT", "FLUSH"});
    std::this_thread::sleep_for(100ms);
  }
  CHECK(job.wait() == success);
  CHECK_FALSE(is_held(server, "stock"));
}

// A fail-over may lose the grant, and not the place that the holder had in line before.
SERVER_CASE("renewal: a job whose release finds no lock is told although the server still has it in its queue")
{
  Process job = job_of(server, "1.5", "9s");
  const auto listens = [&] { return !as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:taken:*"})).empty(); };
  wait_until(listens, "the job's rlock listens");
  std::this_thread::sleep_for(200ms);  // its first renewal is over, and the next one is due in three seconds
  const std::string owner = as_texts(server.command({"HKEYS", "stock"})).at(0);
  server.command({"ZADD", "rlock:queue:{stock}", "1", owner});
  server.command({"DEL", "stock"});
  expect_end(job, Exit{.code = 121, .signal = 0}, {err_has("expired or deleted")});
}

SERVER_CASE("renewal: --on-lost warn lets the job go on, and still says so with 121")
{
  Process job = held_run(server, {"-k", "stock", "--ttl", "600ms", "--on-lost", "warn"},
                         {"sh", "-c", "sleep 1.5; echo finished"});
  server.command({"DEL", "stock"});
  expect_end(job, exited(121), {out_is("finished\n")});
}

SERVER_CASE("a fixed lease is never renewed, and its job is stopped before it is over")
{
  Process job = held_run(server, {"-k", "stock", "--lease", "3s"}, {"sleep", "20"});
  std::int64_t last = pttl(server);
  while (job.running()) {
    const std::int64_t left = pttl(server);
    CHECK(left <= last);
    last = std::max<std::int64_t>(left, 0);
    std::this_thread::sleep_for(20ms);
  }
  CHECK(job.wait() == exited(124));
  CHECK_FALSE(is_held(server, "stock"));
}

// The watchdog starts late and needs a thread and descriptors, which the job may have used up.
TEST_CASE("renewal: no watchdog for want of descriptors costs neither the job nor the release")
{
  skip_with_address_sanitizer("the undefined-behaviour sanitizer takes two descriptors to look at an object");
  const RedisServer server;
  int ran = 0;
  const int plenty = is_quorum_topology() ? 24 : 14;
  for (int limit = 4; limit < plenty; ++limit) {
    CAPTURE(limit);
    const std::string limited = "ulimit -n " + std::to_string(limit) + "; exec \"$@\"";
    std::vector<std::string> words{"sh", "-c", limited, "sh"};
    for (const std::string& word :
         rlock_argv({"run", "-S", server.url(), "-k", "stock", "--ttl", "2s", "--", "sleep", "0.4"})) {
      words.push_back(word);
    }
    const Exit end = Process(words).wait();
    const bool too_few = is_quorum_topology() && end.code == 69;  // not enough servers could be asked
    const bool refused = end.code == 71 || too_few;               // before the job began
    CHECK((refused || end == success));
    CHECK_FALSE(is_held(server, "stock"));
    ran += refused ? 0 : 1;
  }
  CHECK(ran > 0);
}

TEST_SUITE_END();
