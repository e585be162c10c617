// SPDX-License-Identifier: Apache-2.0
// Waiting ends when the lock is free, when the time is over, or at once on a signal; and leaves nothing behind.
#include "support/integration.h"

using namespace rlock::test;

namespace {

std::vector<std::string> words_on(const RedisServer& server, std::vector<std::string> words)
{
  words.insert(words.begin(), {"run", "-S", server.url(), "-k", "k"});
  return rlock_argv(std::move(words));
}

void take_as_somebody(const RedisServer& server, const std::string& ttl_ms)
{
  server.command({"HSET", "k", "somebody:1", "1"});
  server.command({"PEXPIRE", "k", ttl_ms});
}

bool somebody_waits(const RedisServer& server) { return listening(server) > 0; }

// No trace of the waiter, besides the lock of another client: it has left the queue. Only the history stays, and the note that
// answers a repeated request, each with a ttl.
bool nothing_left(const RedisServer& server)
{
  auto keys = as_texts(server.command({"KEYS", "*"}));
  std::erase(keys, "k");
  const std::string history = "rlock:events:{k}";
  const bool has_history_without_ttl = std::erase(keys, history) > 0 && as_int(server.command({"PTTL", history})) < 0;
  const std::string notes = "rlock:waiters:{k}";
  const bool only_notes = keys.empty() || keys == std::vector<std::string>{notes};
  const bool only_gone =
      keys.empty() || as_texts(server.command({"HKEYS", notes})) == std::vector<std::string>{"#gone"};
  return !has_history_without_ttl && only_notes && only_gone &&
         (keys.empty() || as_int(server.command({"PTTL", notes})) > 0);
}

}  // namespace

TEST_SUITE_BEGIN("topology");

SERVER_CASE("waiting: a lock that expires is taken" * doctest::test_suite("topology-quick"))
{
  take_as_somebody(server, "400");
  CHECK(Process(words_on(server, {"--", "true"})).wait() == success);
}

SERVER_CASE("waiting: -w gives up in time" * doctest::test_suite("topology-quick"))
{
  take_as_somebody(server, "60000");
  const auto from = std::chrono::steady_clock::now();
  CHECK(Process(words_on(server, {"-w", "0.4", "--", "true"})).wait() == exited(75));
  CHECK(std::chrono::steady_clock::now() - from >= 400ms);
  CHECK(nothing_left(server));
}

SERVER_CASE("waiting: a signal ends it, by the same signal, and nothing is left")
{
  take_as_somebody(server, "60000");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    CAPTURE(signal);
    Process waiter(words_on(server, {"--", "true"}));
    wait_until([&] { return somebody_waits(server); }, "the waiter listens");
    waiter.signal(signal);
    CHECK(waiter.wait(5s) == died_of(signal));
    CHECK(nothing_left(server));
  }
}

TEST_CASE("waiting: a server that goes away meanwhile is asked again" * doctest::test_suite("topology-quick"))
{
  skip_on_quorum("who waits is seen by its listening at one server");
  RedisServer server({.args = {"--appendonly", "yes", "--appendfsync", "always"}});
  take_as_somebody(server, "1500");
  Process waiter(words_on(server, {"--", "echo", "ran"}));
  wait_until([&] { return somebody_waits(server); }, "the waiter listens");
  server.kill_hard();
  std::this_thread::sleep_for(200ms);
  server.restart();
  expect_end(waiter, success, {out_is("ran\n")});
}

TEST_CASE("waiting: a server that goes away and stays away is 69 when time is over" *
          doctest::test_suite("topology-quick"))
{
  skip_on_quorum("who waits is seen by its listening at one server");
  RedisServer server;
  take_as_somebody(server, "60000");
  Process waiter(words_on(server, {"-w", "1", "--", "true"}));
  wait_until([&] { return somebody_waits(server); }, "the waiter listens");
  server.kill_hard();
  CHECK(waiter.wait(5s) == exited(69));
}

SERVER_CASE("waiting: after a second it says for whom")
{
  take_as_somebody(server, "60000");
  Process waiter(words_on(server, {"-w", "1.5", "--", "true"}));
  expect_end(waiter, exited(75), {err_begins("rlock: waiting for k, place 1, held by somebody:1, ttl ")});
}

TEST_SUITE_END();
