// SPDX-License-Identifier: Apache-2.0
// As many locks as one host may hold: what they cost, and that none of them is lost. ctest runs nothing beside it.
#include "process/process_tree.h"
#include "support/integration.h"
#include "support/scripted_server.h"

#include <deque>

using namespace rlock::test;

namespace {

constexpr std::size_t files_of_a_run = 15;  // rlock(7), MANY LOCKS
constexpr std::size_t threads_of_a_run = 2;
[[maybe_unused]] constexpr std::size_t memory_of_a_lock = 10;     // KiB; not under sanitizers
[[maybe_unused]] constexpr std::size_t memory_of_a_run = 10'000;  // KiB

std::string key(int number) { return "lock" + std::to_string(number); }

// How many of the locks are held.
std::int64_t held(const RedisServer& server, int locks)
{
  Words exists{"EXISTS"};
  for (int i = 0; i < locks; ++i) {
    exists.push_back(key(i));
  }
  return as_int(server.command(exists));
}

rlock::test::Process hold_all(const RedisServer& server, int locks, rlock::Millis ttl)
{
  Words options{"--ttl", std::to_string(ttl.count()) + "ms", "--server-timeout", "10s"};
  for (int i = 0; i < locks; ++i) {
    options.insert(options.end(), {"-k", key(i)});
  }
  return start_run(server.direct_url(), options, {"sh", "-c", "echo runs; exec sleep 600"});
}

std::size_t kilobytes(pid_t pid)
{
  const std::string status = text_of("/proc/" + std::to_string(pid) + "/status");
  return static_cast<std::size_t>(std::stoul(status.substr(status.find("VmRSS:") + 6)));
}

std::size_t count_in(pid_t pid, const char* what)
{
  return numbers_in(("/proc/" + std::to_string(pid) + "/" + what).c_str()).size();
}

// Runs of so many locks each, each on a server of its own, hold them all when the first lease of each is over.
void outlive_first_lease(int runs, int locks, rlock::Millis ttl)
{
  std::deque<RedisServer> servers;
  std::vector<rlock::test::Process> holders;
  for (int i = 0; i < runs; ++i) {
    servers.emplace_back(RedisServer::Options{.alone = true});
    holders.push_back(hold_all(servers.back(), locks, ttl));
  }
  for (rlock::test::Process& holder : holders) {
    wait_until([&] { return !holder.running() || holder.out() == "runs\n"; }, "the job runs", 120s);
    REQUIRE_MESSAGE(holder.running(), holder.err());
  }
  const Instant all_taken = real_clock.now();
  wait_until([&] { return real_clock.now() > all_taken + ttl; }, "the first lease of each lock is over", 2 * ttl);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    rlock::test::Process& holder = holders[i];
    REQUIRE_MESSAGE(holder.running(), holder.err());
    CHECK(held(servers[i], locks) == locks);
    CHECK(count_in(holder.pid(), "task") == threads_of_a_run);
    CHECK(count_in(holder.pid(), "fd") <= files_of_a_run);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(kilobytes(holder.pid()) < memory_of_a_lock * static_cast<std::size_t>(locks) + memory_of_a_run);
#endif
    holder.signal(SIGTERM);
    CHECK(holder.wait(60s) == died_of(SIGTERM));
    CHECK(held(servers[i], locks) == 0);
  }
}

}  // namespace

TEST_CASE("many locks: 1 000 of one run need two threads, and outlive their first lease")
{
  outlive_first_lease(1, 1000, 3s);
}

TEST_CASE("many locks: 10 000 on one host outlive their first lease, with as much memory as the manual says")
{
  outlive_first_lease(4, 2500, 30s);
}
