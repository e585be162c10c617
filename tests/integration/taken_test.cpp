// SPDX-License-Identifier: Apache-2.0
// A lock that was deleted under its holder: the next grant tells the holder, long before its next renewal.
#include "support/integration.h"
#include "support/redis_cluster.h"
#include "support/script.h"

#include <deque>

using namespace rlock::test;

namespace {

constexpr Exit lost = exited(121);
constexpr Millis soon{8000};  // on a busy machine; renewals and checks come later

// All its holders have subscribed to the next grant.
bool is_listened_to(const RedisServer& server, const std::string& key)
{
  return server.command({"PUBSUB", "NUMSUB", "rlock:taken:{" + key + "}"}).elements.at(1).integer > 0;
}

void wait_for_listeners(const RedisServer& server, const std::string& key)
{
  wait_until([&] { return is_listened_to(server, key); }, "the holder listens", 30s);
}

struct Pair {
  const char* why;
  Words first;
  Words second;
};

const Words forever{"sleep", "100"};

}  // namespace

TEST_CASE("taken: a holder whose lock was deleted is stopped by the next grant, whatever its kind and its ttl")
{
  const Pair pairs[] = {
      {"plain", {}, {}},
      {"a writer", {"-x"}, {"-x"}},
      {"a reader, by a writer", {"-s"}, {"-x"}},
      {"one permit", {"--permits", "1"}, {"--permits", "1"}},
      {"a string", {"--format", "string"}, {"--format", "string"}},
  };
  for (const Pair& pair : pairs) {
    for (const Words& gone : {Words{"DEL", "k", "{k}:timeout"}, Words{"FLUSHALL"}}) {
      CAPTURE(pair.why);
      CAPTURE(gone.front());
      const RedisServer server({.alone = true});
      const auto run = [&](Words options, const char* lease) {
        return start_run(server.url(), joined(std::move(options), {"-k", "k", lease, "5m", "-n"}), forever);
      };
      Process first = run(pair.first, gone.front() == "DEL" ? "--ttl" : "--lease");
      wait_for_listeners(server, "k");
      server.command(gone);
      Process second = run(pair.second, "--ttl");
      CHECK(first.wait(soon) == lost);
      CHECK(second.running());
    }
  }
}

TEST_CASE("taken: a deleted lock of rlock flock and of rlock once is told as well")
{
  const RedisServer server({.alone = true});
  const auto flock = [&] { return start_on(server, {"flock", "-n", "--ttl", "5m", "f", "sleep", "100"}); };
  Process first = flock();
  wait_for_listeners(server, "f");
  server.command({"DEL", "f"});
  Process second = flock();
  first.wait(soon);
  CHECK(second.running());

  const auto once = [&] {
    return start_rlock(with_job({"once", "-S", server.url(), "-k", "o", "--for", "1h", "--ttl", "5m"}, forever));
  };
  Process earlier = once();
  wait_for_listeners(server, "o");
  server.command({"DEL", "o"});
  Process later = once();
  CHECK(earlier.wait(soon) == lost);
  CHECK(later.running());
}

SERVER_CASE("taken: a keeper tells its process when another owner has taken the lock")
{
  Process holder = script(server, R"(trap 'echo told; exit 7' TERM
      lock=$(rlock acquire -S "$URL" -k x --ttl 5m --pid $$ --export) || exit; echo ready; while :; do sleep 0.02; done)");
  keeper_of(server, holder);
  wait_for_listeners(server, "x");
  server.command({"DEL", "x"});
  const Process second = start_run(server.url(), {"-k", "x", "-n"}, forever);
  CHECK(holder.wait(soon) == exited(7));
}

TEST_CASE("taken: a job that had just begun asks once when its watchdog starts to listen")
{
  const RedisServer server({.alone = true});
  const auto run = [&](const char* lease) { return start_run(server.url(), {"-k", "k", lease, "5m"}, forever); };
  for (const char* lease : {"--ttl", "--lease"}) {
    CAPTURE(lease);
    Process first = run(lease);
    wait_until([&] { return is_held(server); }, "it is held");
    server.command({"DEL", "k"});
    CHECK(first.wait(soon) == lost);
  }
}

TEST_CASE("taken: a fixed lease whose lock was deleted is found at the next check, though no other job comes")
{
  const RedisServer server({.alone = true});
  const auto from = std::chrono::steady_clock::now();
  Process job = start_run(server.url(), {"-k", "k", "--lease", "12s", "--kill-after", "0"}, forever);
  wait_for_listeners(server, "k");
  server.command({"DEL", "k"});
  CHECK(job.wait(30s) == lost);
  CHECK(std::chrono::steady_clock::now() - from < 10s);  // a third of the lease, and not its end
}

TEST_CASE("taken: the check of a fixed lease changes no ttl")
{
  const RedisServer server({.alone = true});
  const Process job = held_run(server, {"--lease", "9s"}, forever);
  server.command({"PERSIST", "k"});
  const auto asked = [&] { return calls_of(server, "evalsha") + calls_of(server, "eval"); };
  const auto before = asked();
  wait_until([&] { return asked() >= before + 2; }, "it was checked twice");
  CHECK(as_int(server.command({"PTTL", "k"})) == -1);
}

TEST_CASE("taken: on a quorum")
{
  std::deque<RedisServer> servers;
  Words words{"run", "--no-restart-guard"};
  for (int i = 0; i < 3; ++i) {
    servers.emplace_back(RedisOptions{.alone = true});
    words.insert(words.end(), {"-S", servers.back().url()});
  }
  const Words all = with_job(joined(words, {"-k", "k", "--ttl", "5m"}), forever);
  Process first = start_rlock(all);
  const auto listens = [](const RedisServer& server) { return is_listened_to(server, "k"); };
  wait_until([&] { return std::count_if(servers.begin(), servers.end(), listens) >= 2; }, "the holder listens at two",
             30s);
  for (const RedisServer& server : servers) {
    server.command({"DEL", "k"});
  }
  Process second = start_rlock(all);
  CHECK(first.wait(soon) == lost);
  CHECK(second.running());
}

CLUSTER_CASE("taken: on a cluster")
{
  const auto run = [&] { return start_run(cluster.url(), {"-k", "k", "--ttl", "5m", "-n"}, forever); };
  Process first = run();
  wait_for_listeners(cluster.owner("k"), "k");
  cluster.owner("k").command({"DEL", "k"});
  Process second = run();
  CHECK(first.wait(soon) == lost);
  CHECK(second.running());
}

TEST_CASE("taken: a holder whose subscription is cut listens again at once, not a second later")
{
  constexpr Millis at_once{500};  // the pause between two attempts was a second
  const RedisServer server({.alone = true});
  const Process holder = start_run(server.url(), {"-k", "k", "--ttl", "5m"}, forever);
  wait_for_listeners(server, "k");
  Millis shortest = Millis::max();
  for (int cut = 0; cut < 5; ++cut) {
    server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
    const auto since = std::chrono::steady_clock::now();
    wait_for_listeners(server, "k");
    shortest = std::min(shortest, std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - since));
  }
  CHECK(shortest < at_once);
}
