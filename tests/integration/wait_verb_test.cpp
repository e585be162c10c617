// SPDX-License-Identifier: Apache-2.0
// rlock wait: returns when the lock is free, without taking it and without delaying other clients.
#include "support/foreign_client.h"
#include "support/integration.h"
#include "support/queue_fixture.h"

using namespace rlock::test;

namespace {

constexpr Exit busy = exited(75);

// Much longer than a message takes, and much shorter than any ttl or poll in these tests.
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

// `wait` when it is the only subscriber to releases.
Process waiting(const QueueFixture& queue, std::vector<std::string> options = {})
{
  Process wait(queue.rlock("wait", std::move(options)));
  wait_until([&] { return hearing_releases(queue.server) == 1; }, "it listens");
  return wait;
}

ForeignClient foreign_holder(const QueueFixture& queue)
{
  ForeignClient java(queue.server.direct_url(), "k", "uuid:1");
  REQUIRE_FALSE(java.try_lock());
  return java;
}

}  // namespace

TEST_SUITE_BEGIN("topology");

QUEUE_CASE("wait: a free lock is not waited for, and not taken")
{
  Process wait(queue.rlock("wait", {}));
  CHECK(wait.wait(promptly) == success);
  CHECK(wait.out() + wait.err() == "");
  CHECK(keys(queue.server).empty());
}

QUEUE_CASE("wait: over as soon as the holder lets go")
{
  Process holder = queue.hold("30s");
  wait_until([&] { return hearing_releases(queue.server) == 1; }, "the holder watches");
  Process wait(queue.rlock("wait", {}));
  wait_until([&] { return hearing_releases(queue.server) == 2; }, "it listens");
  CHECK(wait.running());
  holder.signal(SIGTERM);
  CHECK(wait.wait(promptly) == success);
}

QUEUE_CASE("wait: over as soon as a foreign holder lets go")
{
  ForeignClient java = foreign_holder(queue);
  Process wait = waiting(queue);
  java.unlock();
  CHECK(wait.wait(promptly) == success);
}

QUEUE_CASE("wait: over when the lease of a killed holder is")
{
  Process holder = queue.hold("1s");
  holder.signal(SIGKILL);
  CHECK(Process(queue.rlock("wait", {})).wait(promptly) == success);
  CHECK_FALSE(is_held(queue.server));
}

QUEUE_CASE("wait: -w gives up in time, -n at once, with a word unless -q")
{
  const ForeignClient java = foreign_holder(queue);
  const auto from = std::chrono::steady_clock::now();
  Process patient(queue.rlock("wait", {"-w", "400ms"}));
  CHECK(patient.wait(promptly) == busy);
  CHECK(std::chrono::steady_clock::now() - from >= 400ms);
  CHECK(patient.err() == "rlock: k is busy after 400ms\n");

  Process hasty(queue.rlock("wait", {"-n", "-q"}));
  expect_end(hasty, busy, {err_is("")}, promptly);
}

QUEUE_CASE("wait: dies of the signal that ends it, and leaves nothing on the server")
{
  const ForeignClient java = foreign_holder(queue);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    Process wait = waiting(queue);
    wait.signal(signal);
    CHECK(wait.wait(promptly) == died_of(signal));
    CHECK(keys(queue.server) == std::vector<std::string>{"k"});
    wait_until([&] { return as_texts(queue.server.command({"PUBSUB", "CHANNELS", "r*"})).empty(); }, "nobody listens");
  }
}

TEST_CASE("wait: goes on after a restart of the server, and hears what is said then")
{
  QueueFixture queue({.args = {"--appendonly", "yes", "--appendfsync", "always"}});
  foreign_holder(queue);
  Process wait = waiting(queue);
  queue.server.kill_hard();
  queue.server.restart();
  wait_until([&] { return hearing_releases(queue.server) == 1; }, "it listens again");
  CHECK(wait.running());
  ForeignClient(queue.server.direct_url(), "k", "uuid:1").unlock();
  CHECK(wait.wait(promptly) == success);
}

QUEUE_CASE("wait: a server that goes away and stays away is 69 when time is over")
{
  const ForeignClient java = foreign_holder(queue);
  Process wait = waiting(queue, {"-w", "1"});
  queue.server.kill_hard();
  CHECK(wait.wait(promptly) == exited(69));
}

QUEUE_CASE("wait: does not join the queue, and a lock that goes from job to job is not free")
{
  Process holder = queue.hold("30s");
  queue.add_waiter("30s", "; sleep 0.05");
  const std::vector<std::string> before = keys(queue.server);
  Process early(queue.rlock("wait", {}));
  wait_until([&] { return hearing_releases(queue.server) == 2; }, "it listens");
  CHECK(queue.queue_length() == 1);
  CHECK(keys(queue.server) == before);
  for (int i = 1; i < 8; ++i) {
    queue.add_waiter("30s", "; sleep 0.05");
  }
  Process late(queue.rlock("wait", {}));
  queue.await_subscriptions();
  holder.signal(SIGTERM);
  CHECK(early.wait(30s) == success);
  CHECK(queue.started_jobs() == numbers_below(8));
  CHECK(late.wait(30s) == success);
  CHECK(queue.started_jobs() == numbers_below(8));
  expect_ends(queue.waiters);
}

QUEUE_CASE("wait: an expired lock with a waiter in the queue is not free")
{
  Process holder = queue.hold("1s");
  queue.add_waiter("30s", "; sleep 0.3");
  queue.await_subscriptions();
  Process wait(queue.rlock("wait", {}));
  holder.signal(SIGKILL);
  CHECK(wait.wait() == success);
  CHECK(queue.started_jobs() == numbers_below(1));
  CHECK(queue.waiters[0].wait() == success);
}

TEST_SUITE_END();
