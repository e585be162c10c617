// SPDX-License-Identifier: Apache-2.0
// A cluster that changes while its locks are held and waited for.
#include "support/activity_log.h"
#include "support/integration.h"
#include "support/queue_fixture.h"
#include "support/redis_cluster.h"

#include <cstdlib>

using namespace rlock::test;

namespace {

// More waiters on a machine that is fast enough.
int crowd(int usual)
{
  const char* wanted = std::getenv("RLOCK_TEST_CROWD");
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

void add_waiter(ClusterQueueFixture& queue, const ActivityLog& activity, int count, const std::string& ttl)
{
  for (int i = 0; i < count; ++i) {
    queue.add_waiter(ttl, "; " + activity.short_job("w" + std::to_string(i), 30).back());
  }
  queue.await_subscriptions();
}

void all_ran_alone(ClusterQueueFixture& queue, const ActivityLog& activity, int count)
{
  expect_ends(queue.waiters, 100s);
  std::vector<int> ran = queue.started_jobs();
  std::sort(ran.begin(), ran.end());
  CHECK(ran == numbers_below(count));
  CHECK(overlap(activity.jobs()) == "");
  CHECK(queue.queue_length() == 0);
}

}  // namespace

TEST_CASE("cluster: the slot of a lock moves while it is held and waited for: it is kept, and handed over at once")
{
  ClusterQueueFixture queue;
  RedisServer& first = queue.server.owner("k");
  RedisServer& second = queue.server.other_than(first);
  Process holder = queue.hold("6s");
  queue.add_waiter();
  queue.add_waiter();
  queue.await_subscriptions(1);
  queue.server.move_slot("k", second);
  queue.await_subscriptions(1);  // on the new owner of the slot
  CHECK(&queue.server.owner("k") == &second);
  wait_until([&] { return as_int(second.command({"PTTL", "k"})) > 4500; }, "it is renewed where it is now");
  const auto from = std::chrono::steady_clock::now();
  holder.signal(SIGTERM);
  CHECK(holder.wait().signal == SIGTERM);
  expect_ends(queue.waiters, 5s);
  CHECK(std::chrono::steady_clock::now() - from < 3s);
  CHECK(queue.started_jobs() == numbers_below(2));
}

CLUSTER_CASE("cluster: a slot that is just being moved is waited for")
{
  RedisServer& target = cluster.other_than(cluster.owner("k"));
  cluster.begin_to_move_slot("k", target);
  Process early = start_rlock({"run", "-S", cluster.url(), "-k", "k", "--", "true"});
  std::this_thread::sleep_for(100ms);  // the waiter may or may not meet the half-moved slot
  CHECK(early.running());
  cluster.move_slot("k", target);
  CHECK(early.wait() == success);

  cluster.begin_to_move_slot("k", cluster.other_than(target));
  const auto late = run_rlock({"run", "-S", cluster.url(), "--server-timeout", "300ms", "-k", "k", "--", "true"});
  expect_end(late, 69, {err_has("TRYAGAIN")});
}

TEST_CASE("cluster: a slot moved back and forth during a drain")
{
  const int count = crowd(25);
  ClusterQueueFixture queue;
  const ActivityLog activity;
  RedisServer& first = queue.server.owner("k");
  RedisServer& second = queue.server.other_than(first);
  Process holder = queue.hold("10s");
  add_waiter(queue, activity, count, "10s");
  holder.signal(SIGTERM);
  const auto all_but_few = static_cast<std::size_t>(count - 5);
  for (std::size_t done = 3; done < all_but_few; done += 4) {
    wait_until([&] { return queue.started_jobs().size() >= done; }, "the drain goes on", 60s);
    queue.server.move_slot("k", &queue.server.owner("k") == &first ? second : first);
  }
  all_ran_alone(queue, activity, count);
}

TEST_CASE("cluster: a master killed during a drain, its replica promoted")
{
  const int count = crowd(12);
  ClusterQueueFixture queue({.replicas = true, .node_timeout = 2s});
  const ActivityLog activity;
  Process holder = queue.hold("10s");
  add_waiter(queue, activity, count, "10s");
  holder.signal(SIGTERM);
  wait_until([&] { return queue.started_jobs().size() >= 4; }, "the drain is under way");
  RedisServer& master = queue.server.owner("k");
  master.kill_hard();
  queue.server.wait_until_served();
  CHECK(&queue.server.owner("k") != &master);
  all_ran_alone(queue, activity, count);
}

TEST_CASE("cluster: a job keeps its lock through the death of the master, and a waiter its place")
{
  ClusterQueueFixture queue({.replicas = true, .node_timeout = 2s});
  Process holder = queue.hold("15s");
  queue.add_waiter("15s");
  queue.add_waiter("15s");
  queue.await_subscriptions(1);
  RedisServer& master = queue.server.owner("k");
  const std::string owners = show(master.command({"HKEYS", "k"}));
  master.kill_hard();
  queue.server.wait_until_served();
  queue.await_subscriptions(1);
  CHECK(show(queue.server.command({"HKEYS", "k"})) == owners);
  CHECK(queue.queue_length() == 2);
  const auto is_renewed = [&] { return as_int(queue.server.command({"PTTL", "k"})) > 12'000; };
  wait_until(is_renewed, "it is renewed at its new master", 20s);
  CHECK(holder.running());
  CHECK(run_rlock({"run", "-S", queue.server.url(), "-k",
                   queue.server.key_at(queue.server.other_than(queue.server.owner("k")), "s"), "--sync", "1", "--",
                   "true"})
            .code == 0);
  holder.signal(SIGTERM);
  expect_ends(queue.waiters, 10s);
  CHECK(queue.started_jobs() == numbers_below(2));
}
