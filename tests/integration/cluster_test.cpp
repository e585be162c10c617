// SPDX-License-Identifier: Apache-2.0
// The verbs on a cluster do what they do on one server, on any node.
#include "redis/slot_map.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/queue_fixture.h"
#include "support/redis_cluster.h"

using namespace rlock::test;

namespace {

Finished run_on(const RedisCluster& cluster, Words words) { return run_at(cluster.url(), std::move(words)); }
Process start_on(const RedisCluster& cluster, Words words) { return start_at(cluster.url(), std::move(words)); }

// One name for each of the masters.
Words one_key_each(const RedisCluster& cluster, const std::string& start)
{
  Words keys;
  for (const RedisServer& node : cluster.nodes()) {
    keys.push_back(cluster.key_at(node, start));
  }
  return keys;
}

bool is_held(const RedisCluster& cluster, const std::string& key)
{
  return as_int(cluster.command({"EXISTS", key})) == 1;
}

// Free locks leave only the fencing numbers, and records with a ttl.
bool is_tidy(const RedisCluster& cluster)
{
  return std::all_of(cluster.nodes().begin(), cluster.nodes().end(), [](const RedisServer& node) {
    const Words keys = as_texts(node.command({"KEYS", "*"}));
    return std::all_of(keys.begin(), keys.end(), [](const std::string& key) {
      return key.starts_with("redisson_lock_token:") || key.starts_with("rlock:events:") ||
             key.starts_with("rlock:waiters");
    });
  });
}

}  // namespace

TEST_CASE("cluster: run, wherever the lock belongs, and the job is told the servers without a password")
{
  const RedisCluster cluster({.password = "open sesame"});
  const ProcessOptions with_password{.env = {{"RLOCK_PASSWORD", "open sesame"}}};
  for (const RedisServer& node : cluster.nodes()) {
    const std::string key = cluster.key_at(node, "k");
    const std::string job = "echo $RLOCK_KEY $RLOCK_SERVER; " + std::string(RLOCK_BINARY) + " check && echo ours";
    const auto ran = run_at(cluster.url(), {"run", "-k", key, "--", "sh", "-c", job}, with_password);
    expect_end(ran, 0, {err_is(""), out_begins(key + " " + cluster.url() + "\n"), out_has("ours")});
    CHECK(as_int(node.command({"EXISTS", "redisson_lock_token:{" + key + "}"})) == 1);
  }
  CHECK(is_tidy(cluster));
  const auto refused = run_on(cluster, {"run", "-k", "k", "--", "true"});
  CHECK(refused.code == 77);
}

TEST_CASE("cluster: the queue is served in order, without the dead waiters")
{
  ClusterQueueFixture queue;
  Process holder = queue.hold("30s");
  queue.add_waiters(20);
  queue.await_subscriptions();
  queue.waiters[3].signal(SIGKILL);
  holder.signal(SIGTERM);
  for (std::size_t i = 0; i < queue.waiters.size(); ++i) {
    CHECK(queue.waiters[i].wait(30s) == (i == 3 ? died_of(SIGKILL) : success));
  }
  std::vector<int> expected = numbers_below(20);
  expected.erase(expected.begin() + 3);
  CHECK(queue.started_jobs() == expected);
  CHECK(queue.queue_length() == 0);
  // Two requests and a confirmation each, as on one server; a slow job costs one more, because its hand-over is
  // checked.
  CHECK(calls_of(queue.server.owner("k"), "evalsha") <= 4 * 20);
}

CLUSTER_CASE("cluster: every kind of lock, on every node")
{
  struct Kind {
    Words holder;
    Words refused;
    Words admitted;
  };
  const std::vector<Kind> kinds{
      {.holder = {}, .refused = {"-n"}, .admitted = {}},
      {.holder = {"-x"}, .refused = {"-n", "-s"}, .admitted = {}},
      {.holder = {"-s"}, .refused = {"-n", "-x"}, .admitted = {"-n", "-s"}},
      {.holder = {"--permits", "2"}, .refused = {}, .admitted = {"-n", "--permits", "2"}},
      {.holder = {"--format", "string"}, .refused = {"-n", "--format", "string"}, .admitted = {}},
  };
  const auto words = [](const std::string& key, const Words& options, const Words& job) {
    Words all = joined({"run", "-k", key}, options);
    all.insert(all.end(), job.begin(), job.end());
    return all;
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (const std::string& key : one_key_each(cluster, "kind" + std::to_string(i) + "-")) {
      CAPTURE(key);
      Process holder = start_on(cluster, words(key, kinds[i].holder, {"--", "sleep", "100"}));
      wait_until([&] { return is_held(cluster, key); }, "it is held");
      if (!kinds[i].refused.empty()) {
        CHECK(run_on(cluster, words(key, kinds[i].refused, {"--", "true"})).code == 75);
      }
      if (!kinds[i].admitted.empty()) {
        CHECK(run_on(cluster, words(key, kinds[i].admitted, {"--", "true"})).code == 0);
      }
      holder.signal(SIGTERM);
      CHECK(holder.wait().signal == SIGTERM);
    }
  }
  for (const std::string& key : one_key_each(cluster, "once")) {
    for (const char* out : {"ran\n", ""}) {
      CHECK(run_on(cluster, {"once", "-k", key, "--for", "1m", "--", "echo", "ran"}).out == out);
    }
  }
}

CLUSTER_CASE("cluster: shards on different nodes, and a waiter is notified by each of them")
{
  std::vector<Process> holders;
  for (int i = 0; i < 6; ++i) {
    holders.push_back(start_on(cluster, {"run", "-k", "k", "--shards", "6", "--", "sleep", "100"}));
  }
  const auto held = [&] {
    int count = 0;
    for (int i = 0; i < 6; ++i) {
      count += is_held(cluster, "k:" + std::to_string(i)) ? 1 : 0;
    }
    return count;
  };
  wait_until([&] { return held() == 6; }, "each has one");
  CHECK(run_on(cluster, {"run", "-k", "k", "--shards", "6", "-n", "--", "true"}).code == 75);
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    const std::string shard = "k:" + std::to_string(i);
    Process waiter =
        start_on(cluster, {"run", "-k", "k", "--shards", "6", "--", "sh", "-c", "echo $RLOCK_SHARD; exec sleep 100"});
    const auto in_all_lines = [&] {
      int lines = 0;
      for (int n = 0; n < 6; ++n) {
        lines += as_int(cluster.command({"ZCARD", "rlock:queue:{k:" + std::to_string(n) + "}"})) == 1 ? 1 : 0;
      }
      return lines == 6;
    };
    wait_until(in_all_lines, "it is in every queue");
    const auto state = run_on(cluster, {"status", "-k", shard, "--json"}).out;
    const auto pid_at = state.find("\"pid\":");
    REQUIRE(pid_at != std::string::npos);
    const pid_t holder = std::stoi(state.substr(pid_at + 6));
    const auto from = std::chrono::steady_clock::now();
    REQUIRE(::kill(holder, SIGTERM) == 0);
    wait_until([&] { return waiter.out() == std::to_string(i) + "\n"; }, "it has the one that came free");
    CHECK(std::chrono::steady_clock::now() - from < 3s);  // by a message, not by polling after look_again_after
    holders.push_back(std::move(waiter));
  }
}

CLUSTER_CASE("cluster: several keys in different slots are held all or none, and waited for one after the other")
{
  const Words keys = one_key_each(cluster, "k");
  Process last = start_on(cluster, {"run", "-k", keys[2], "--", "sleep", "100"});
  wait_until([&] { return is_held(cluster, keys[2]); }, "the last one is held");
  CHECK(run_on(cluster, {"run", "-k", keys[0], "-k", keys[1], "-k", keys[2], "-n", "--", "true"}).code == 75);
  CHECK_FALSE(is_held(cluster, keys[0]));

  Process all =
      start_on(cluster, {"run", "-k", keys[2], "-k", keys[0], "-k", keys[1], "--ttl", "2s", "--", "sleep", "100"});
  const auto waits = [&] { return as_int(cluster.command({"ZCARD", "rlock:queue:{" + keys[2] + "}"})) == 1; };
  wait_until(waits, "it waits for the last");
  last.signal(SIGTERM);
  const auto all_held = [&] {
    return std::all_of(keys.begin(), keys.end(), [&](const auto& key) { return is_held(cluster, key); });
  };
  wait_until(all_held, "it has all of them");
  const auto listed = run_on(cluster, {"list"});
  CHECK(listed.code == 0);
  for (const std::string& key : keys) {
    CHECK(has(listed.out, key + " "));
  }
  const auto told = run_on(cluster, {"events"});
  CHECK(told.code == 0);
  for (const std::string& key : keys) {
    CHECK(has(told.out, " " + key + " "));
  }
  all.signal(SIGTERM);
  CHECK(all.wait().signal == SIGTERM);
  CHECK(is_tidy(cluster));
}

CLUSTER_CASE("cluster: nested, status, ttl, wait, acquire, renew, release, force-unlock")
{
  for (const std::string& key : one_key_each(cluster, "k")) {
    CAPTURE(key);
    const std::string rlock = RLOCK_BINARY;
    CHECK(run_on(cluster, {"run", "-k", key, "--", rlock, "run", "-k", key, "-n", "--", "true"}).code == 0);
    CHECK(run_on(cluster, {"status", "-k", key}).code == 1);

    const auto taken = run_on(cluster, {"acquire", "-k", key, "--lease", "30s"});
    REQUIRE(taken.code == 0);
    const std::string token = taken.out.substr(0, taken.out.find('\n'));
    CHECK(run_on(cluster, {"status", "-k", key}).code == 0);
    CHECK(run_on(cluster, {"ttl", "-k", key}).code == 0);
    CHECK(run_on(cluster, {"renew", "-k", key, "--token", token}).code == 0);
    Process waiter = start_on(cluster, {"wait", "-k", key});
    CHECK(run_on(cluster, {"release", "-k", key, "--token", token}).code == 0);
    CHECK(waiter.wait() == success);

    Process holder = start_on(cluster, {"run", "-k", key, "--", "sleep", "100"});
    wait_until([&] { return is_held(cluster, key); }, "it is held");
    CHECK(run_on(cluster, {"force-unlock", "-k", key, "--yes"}).code == 0);
    CHECK(holder.wait(5s).code == 121);
  }
  CHECK(is_tidy(cluster));
}

TEST_CASE("cluster: foreign clients on either kind of channel are told that a lock is free, and are noticed")
{
  ClusterQueueFixture queue;
  RedisServer& owner = queue.server.owner("k");
  for (const std::string how : {"PUBLISH", "SPUBLISH"}) {
    CAPTURE(how);
    const std::string channel = "redisson_lock__channel:{k}";
    REQUIRE(as_int(owner.command({"HSET", "k", "java", "1"})) == 1);
    queue.add_waiter();
    wait_until(
        [&] {
          return as_int(owner.command({"PUBSUB", how == "PUBLISH" ? "NUMSUB" : "SHARDNUMSUB", channel}).elements[1]) ==
                 1;
        },
        "the first waiter has subscribed to the lock");
    owner.command({"DEL", "k"});
    const auto from = std::chrono::steady_clock::now();
    CHECK(as_int(owner.command({how, channel, "0"})) == 1);
    CHECK(queue.waiters.back().wait(5s) == success);
    CHECK(std::chrono::steady_clock::now() - from < 3s);
  }
  Process cli({client_program(), "-p", std::to_string(owner.port()), "SSUBSCRIBE", "redisson_lock__channel:{k}"});
  wait_until([&] { return has(cli.out(), "ssubscribe"); }, "a new JVM listens");
  Process old({client_program(), "-p", std::to_string(queue.server.other_than(owner).port()), "SUBSCRIBE",
               "redisson_lock__channel:{k}"});
  wait_until([&] { return has(old.out(), "subscribe"); }, "an old one listens elsewhere");
  CHECK(Process(queue.rlock("run", {"--", "true"})).wait() == success);
  wait_until([&] { return has(cli.out(), "smessage"); }, "the new one hears it");
  // The bus of the nodes loses a message while a link of it is made.
  const auto hears_a_run = [&] {
    CHECK(Process(queue.rlock("run", {"--", "true"})).wait() == success);
    return has(old.out(), "message");
  };
  wait_until(hears_a_run, "the old one hears it");
}

TEST_CASE("cluster: what it is not, and what it is not called, is said in one line")
{
  const RedisServer single({.tcp = true});
  const std::string address = single.tcp_url().substr(std::string("redis://").size());
  const auto no_cluster = run_rlock({"run", "-S", "redis+cluster://" + address, "-k", "k", "--", "true"});
  CHECK(no_cluster.code == 78);
  CHECK(no_cluster.err ==
        "rlock: " + single.tcp_url() + " is no node of a cluster (use -S " + single.tcp_url() + ")\n");
  CHECK(as_int(single.command({"DBSIZE"})) == 0);

  const RedisCluster cluster;
  const RedisServer& wrong = cluster.other_than(cluster.owner("k"));
  const auto one_node = run_rlock({"run", "-S", wrong.tcp_url(), "-k", "k", "--", "true"});
  expect_end(one_node, 78,
             {err_has("(it is a node of a cluster: use -S redis+cluster://127.0.0.1:" + std::to_string(wrong.port()))});
  CHECK(count(one_node.err, "\n") == 1);

  CHECK(run_on(cluster, {"run", "-k", "a{", "--", "true"}).code == 78);
  CHECK(run_rlock({"run", "-S", cluster.url() + "/1", "-k", "k", "--", "true"}).code == 64);
  CHECK(run_rlock({"run", "-S", cluster.url(), "-S", single.tcp_url(), "-k", "k", "--", "true"}).code == 64);
  CHECK(run_rlock({"run", "-S", "redis+cluster://127.0.0.1:1,127.0.0.1:" + std::to_string(wrong.port()), "-k", "k",
                   "--", "true"})
            .code == 0);
  CHECK(run_rlock({"run", "-S", "redis+cluster://127.0.0.1:1,127.0.0.1:2", "-k", "k", "--", "true"}).code == 69);

  cluster.owner("k").command({"CLUSTER", "DELSLOTS", std::to_string(slot_of("k"))});
  const auto down = run_rlock(
      {"run", "-S", "redis+cluster://127.0.0.1:" + std::to_string(cluster.owner("a").port()), "-k", "k", "--", "true"});
  expect_end(down, 69, {err_has("CLUSTERDOWN")});
}
