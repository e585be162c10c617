// SPDX-License-Identifier: Apache-2.0
// As many locks as one host may hold: what they cost, and that none of them is lost. ctest runs nothing beside it.
#include "process/process_tree.h"
#include "support/integration.h"
#include "support/scripted_server.h"
#include "support/skip.h"

#include <deque>

#include <sys/resource.h>

using namespace rlock::test;

namespace {

// Redis takes 10 000 connections unless it is configured, of which each lock needs two.
constexpr int servers = 4;
constexpr int locks_of_each = 2500;
constexpr std::size_t files_of_a_lock = 5;    // rlock(7), MANY LOCKS
constexpr std::size_t memory_of_a_lock = 48;  // KiB; the manual says 40, and the program itself is not in it
constexpr rlock::Millis ttl = 30s;

std::string key(int number) { return "lock" + std::to_string(number); }

// How many of the locks are held.
std::int64_t held(const RedisServer& server)
{
  Words exists{"EXISTS"};
  for (int i = 0; i < locks_of_each; ++i) {
    exists.push_back(key(i));
  }
  return as_int(server.command(exists));
}

rlock::test::Process hold_all(const RedisServer& server)
{
  Words options{"--ttl", std::to_string(ttl.count()) + "ms", "--server-timeout", "10s"};
  for (int i = 0; i < locks_of_each; ++i) {
    options.insert(options.end(), {"-k", key(i)});
  }
  return start_run(server.direct_url(), options, {"sh", "-c", "echo runs; exec sleep 600"});
}

std::size_t kilobytes(pid_t pid)
{
  const std::string status = text_of("/proc/" + std::to_string(pid) + "/status");
  return static_cast<std::size_t>(std::stoul(status.substr(status.find("VmRSS:") + 6)));
}

}  // namespace

TEST_CASE(
    "many locks: 10 000 on one host outlive their first lease, with as many files and as much memory as the manual "
    "says")
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip("a sanitizer needs memory of its own for each thread");
#endif
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < (files_of_a_lock + 1) * locks_of_each) {
    skip("a process may not open enough files");
  }
  std::deque<RedisServer> started;
  std::vector<rlock::test::Process> holders;
  for (int i = 0; i < servers; ++i) {
    started.emplace_back(RedisServer::Options{.alone = true});
    holders.push_back(hold_all(started.back()));
  }
  for (rlock::test::Process& holder : holders) {
    wait_until([&] { return !holder.running() || holder.out() == "runs\n"; }, "the job runs", 120s);
    REQUIRE_MESSAGE(holder.running(), holder.err());
  }
  const Instant all_taken = real_clock.now();
  wait_until([&] { return real_clock.now() > all_taken + ttl; }, "the first lease of each lock is over", 2 * ttl);
  for (std::size_t i = 0; i < servers; ++i) {
    REQUIRE_MESSAGE(holders[i].running(), holders[i].err());
    CHECK(held(started[i]) == locks_of_each);
    CHECK(numbers_in(("/proc/" + std::to_string(holders[i].pid()) + "/fd").c_str()).size() <=
          files_of_a_lock * locks_of_each + 20);
    CHECK(kilobytes(holders[i].pid()) < memory_of_a_lock * locks_of_each);
  }
  for (std::size_t i = 0; i < servers; ++i) {
    holders[i].signal(SIGTERM);
    CHECK(holders[i].wait(60s) == died_of(SIGTERM));
    CHECK(held(started[i]) == 0);
  }
}
