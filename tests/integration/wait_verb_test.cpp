// SPDX-License-Identifier: Apache-2.0
// rlock wait: until the lock is free, without taking it and without being in anybody's way.
#include "support/foreign_client.h"
#include "support/line.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

constexpr Exit ok{.code = 0, .signal = 0};
constexpr Exit busy{.code = 75, .signal = 0};

// What is much longer than a word of the server takes, and much less than any ttl or look of these tests.
constexpr auto promptly = 4s;

std::int64_t hearing_releases(const RedisServer& server)
{
  return server.command({"PUBSUB", "NUMSUB", "redisson_lock__channel:{k}"}).elements.at(1).integer;
}

std::vector<std::string> keys(const RedisServer& server)
{
  std::vector<std::string> all = as_texts(server.command({"KEYS", "*"}));
  std::sort(all.begin(), all.end());
  return all;
}

// `wait` where nobody else listens to releases, ready to be told.
Process waiting(const Line& line, std::vector<std::string> options = {})
{
  Process wait(line.rlock("wait", std::move(options)));
  wait_until([&] { return hearing_releases(line.server) == 1; }, "it listens");
  return wait;
}

ForeignClient foreign_holder(const Line& line)
{
  ForeignClient java(line.server.direct_url(), "k", "uuid:1");
  REQUIRE_FALSE(java.try_lock());
  return java;
}

}  // namespace

TEST_CASE("wait: a free lock is not waited for, and not taken")
{
  const Line line;
  Process wait(line.rlock("wait", {}));
  CHECK(wait.wait(promptly) == ok);
  CHECK(wait.out() + wait.err() == "");
  CHECK(keys(line.server).empty());
}

TEST_CASE("wait: over as soon as the holder lets go")
{
  Line line;
  Process holder = line.hold("30s");
  wait_until([&] { return hearing_releases(line.server) == 1; }, "the holder watches");
  Process wait(line.rlock("wait", {}));
  wait_until([&] { return hearing_releases(line.server) == 2; }, "it listens");
  CHECK(wait.running());
  holder.signal(SIGTERM);
  CHECK(wait.wait(promptly) == ok);
}

TEST_CASE("wait: over as soon as a foreign holder lets go")
{
  const Line line;
  ForeignClient java = foreign_holder(line);
  Process wait = waiting(line);
  java.unlock();
  CHECK(wait.wait(promptly) == ok);
}

TEST_CASE("wait: over when the lease of a killed holder is")
{
  Line line;
  Process holder = line.hold("1s");
  holder.signal(SIGKILL);
  CHECK(Process(line.rlock("wait", {})).wait(promptly) == ok);
  CHECK(as_int(line.server.command({"EXISTS", "k"})) == 0);
}

TEST_CASE("wait: -w gives up in time, -n at once, with a word unless -q")
{
  const Line line;
  const ForeignClient java = foreign_holder(line);
  const auto from = std::chrono::steady_clock::now();
  Process patient(line.rlock("wait", {"-w", "400ms"}));
  CHECK(patient.wait(promptly) == busy);
  CHECK(std::chrono::steady_clock::now() - from >= 400ms);
  CHECK(patient.err() == "rlock: k is busy after 400ms\n");

  Process hasty(line.rlock("wait", {"-n", "-q"}));
  CHECK(hasty.wait(promptly) == busy);
  CHECK(hasty.err() == "");
}

TEST_CASE("wait: dies of the signal that ends it, and leaves nothing on the server")
{
  const Line line;
  const ForeignClient java = foreign_holder(line);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    Process wait = waiting(line);
    wait.signal(signal);
    CHECK(wait.wait(promptly) == Exit{.code = -1, .signal = signal});
    CHECK(keys(line.server) == std::vector<std::string>{"k"});
    wait_until([&] { return as_texts(line.server.command({"PUBSUB", "CHANNELS", "r*"})).empty(); }, "nobody listens");
  }
}

TEST_CASE("wait: goes on after a restart of the server, and hears what is said then")
{
  Line line({.args = {"--appendonly", "yes", "--appendfsync", "always"}});
  foreign_holder(line);
  Process wait = waiting(line);
  line.server.kill_hard();
  line.server.restart();
  wait_until([&] { return hearing_releases(line.server) == 1; }, "it listens again");
  CHECK(wait.running());
  ForeignClient(line.server.direct_url(), "k", "uuid:1").unlock();
  CHECK(wait.wait(promptly) == ok);
}

TEST_CASE("wait: a server that goes away and stays away is 69 when time is over")
{
  Line line;
  const ForeignClient java = foreign_holder(line);
  Process wait = waiting(line, {"-w", "1"});
  line.server.kill_hard();
  CHECK(wait.wait(promptly) == Exit{.code = 69, .signal = 0});
}

TEST_CASE("wait: takes no place in line, and a lock that goes from job to job is not free")
{
  Line line;
  Process holder = line.hold("30s");
  line.come("30s", "; sleep 0.05");
  const std::vector<std::string> before = keys(line.server);
  Process early(line.rlock("wait", {}));
  wait_until([&] { return hearing_releases(line.server) == 2; }, "it listens");
  CHECK(line.in_line() == 1);
  CHECK(keys(line.server) == before);
  for (int i = 1; i < 8; ++i) {
    line.come("30s", "; sleep 0.05");
  }
  Process late(line.rlock("wait", {}));
  line.all_listen();
  holder.signal(SIGTERM);
  CHECK(early.wait(30s) == ok);
  CHECK(line.ran() == numbers_below(8));
  CHECK(late.wait(30s) == ok);
  CHECK(line.ran() == numbers_below(8));
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait() == ok);
  }
}

TEST_CASE("wait: an expired lock for which somebody stands in line is not free")
{
  Line line;
  Process holder = line.hold("1s");
  line.come("30s", "; sleep 0.3");
  line.all_listen();
  Process wait(line.rlock("wait", {}));
  holder.signal(SIGKILL);
  CHECK(wait.wait() == ok);
  CHECK(line.ran() == numbers_below(1));
  CHECK(line.waiters[0].wait() == ok);
}
