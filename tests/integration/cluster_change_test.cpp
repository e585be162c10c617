// SPDX-License-Identifier: Apache-2.0
// A cluster that changes while its locks are held and waited for.
#include "support/line.h"
#include "support/redis_cluster.h"
#include "support/wait_until.h"
#include "support/witness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

constexpr Exit fine{.code = 0, .signal = 0};

// More of them where there is time for it.
int crowd(int usual)
{
  const char* wanted = std::getenv("RLOCK_TEST_CROWD");
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

void come(ClusterLine& line, const Witness& witness, int count, const std::string& ttl)
{
  for (int i = 0; i < count; ++i) {
    line.come(ttl, "; " + witness.short_job("w" + std::to_string(i), 30).back());
  }
  line.all_listen();
}

void all_ran_alone(ClusterLine& line, const Witness& witness, int count)
{
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait(100s) == fine);
  }
  std::vector<int> ran = line.ran();
  std::sort(ran.begin(), ran.end());
  CHECK(ran == numbers_below(count));
  CHECK(overlap(witness.jobs()) == "");
  CHECK(line.in_line() == 0);
}

}  // namespace

TEST_CASE(
    "cluster: the slot of a lock moves while it is held and waited for: it stays ours, and is handed over at once")
{
  ClusterLine line;
  RedisServer& first = line.server.owner("k");
  RedisServer& second = line.server.other_than(first);
  Process holder = line.hold("6s");
  line.come();
  line.come();
  line.all_listen(1);
  line.server.move_slot("k", second);
  line.all_listen(1);  // at the new place
  CHECK(&line.server.owner("k") == &second);
  wait_until([&] { return as_int(second.command({"PTTL", "k"})) > 4500; }, "it is renewed where it is now");
  const auto from = std::chrono::steady_clock::now();
  holder.signal(SIGTERM);
  CHECK(holder.wait().signal == SIGTERM);
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait(5s) == fine);
  }
  CHECK(std::chrono::steady_clock::now() - from < 3s);
  CHECK(line.ran() == numbers_below(2));
}

TEST_CASE("cluster: a slot that is just being moved is waited for")
{
  const RedisCluster cluster;
  RedisServer& target = cluster.other_than(cluster.owner("k"));
  cluster.begin_to_move_slot("k", target);
  Process early(rlock_argv({"run", "-S", cluster.url(), "-k", "k", "--", "true"}));
  std::this_thread::sleep_for(100ms);  // it may meet the half-moved slot, or not: no matter to what is checked
  CHECK(early.running());
  cluster.move_slot("k", target);
  CHECK(early.wait() == fine);

  cluster.begin_to_move_slot("k", cluster.other_than(target));
  const auto late = run_rlock({"run", "-S", cluster.url(), "--server-timeout", "300ms", "-k", "k", "--", "true"});
  CHECK(late.code == 69);
  CHECK(late.err.find("TRYAGAIN") != std::string::npos);
}

TEST_CASE("cluster: a slot moved back and forth during a drain")
{
  const int count = crowd(25);
  ClusterLine line;
  const Witness witness;
  RedisServer& first = line.server.owner("k");
  RedisServer& second = line.server.other_than(first);
  Process holder = line.hold("10s");
  come(line, witness, count, "10s");
  holder.signal(SIGTERM);
  const auto all_but_few = static_cast<std::size_t>(count - 5);
  for (std::size_t done = 3; done < all_but_few; done += 4) {
    wait_until([&] { return line.ran().size() >= done; }, "the drain goes on", 60s);
    line.server.move_slot("k", &line.server.owner("k") == &first ? second : first);
  }
  all_ran_alone(line, witness, count);
}

TEST_CASE("cluster: a master killed during a drain, its replica promoted")
{
  const int count = crowd(12);
  ClusterLine line({.replicas = true, .node_timeout = 2s});
  const Witness witness;
  Process holder = line.hold("10s");
  come(line, witness, count, "10s");
  holder.signal(SIGTERM);
  wait_until([&] { return line.ran().size() >= 4; }, "the drain is under way");
  RedisServer& master = line.server.owner("k");
  master.kill_hard();
  line.server.wait_until_served();
  CHECK(&line.server.owner("k") != &master);
  all_ran_alone(line, witness, count);
}

TEST_CASE("cluster: a job keeps its lock through the death of the master, and a waiter its place")
{
  ClusterLine line({.replicas = true, .node_timeout = 2s});
  Process holder = line.hold("15s");
  line.come("15s");
  line.come("15s");
  line.all_listen(1);
  RedisServer& master = line.server.owner("k");
  const std::string owners = show(master.command({"HKEYS", "k"}));
  master.kill_hard();
  line.server.wait_until_served();
  line.all_listen(1);
  CHECK(show(line.server.command({"HKEYS", "k"})) == owners);
  CHECK(line.in_line() == 2);
  wait_until(
      [&] {
        return as_int(line.server.command({"PTTL", "k"})) > 12'000;
      },
      "it is renewed at its new master", 20s);
  CHECK(holder.running());
  CHECK(
      run_rlock({"run", "-S", line.server.url(), "-k",
                 line.server.key_at(line.server.other_than(line.server.owner("k")), "s"), "--sync", "1", "--", "true"})
          .code == 0);
  holder.signal(SIGTERM);
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait(10s) == fine);
  }
  CHECK(line.ran() == numbers_below(2));
}
