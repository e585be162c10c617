// SPDX-License-Identifier: Apache-2.0
// Five independent masters, some of which are down, hung or replicas.
#include "support/activity_log.h"
#include "support/integration.h"
#include "support/scripted_server.h"

#include <deque>

using namespace rlock::test;

namespace {

struct Quorum {
  std::deque<RedisServer> servers;
  explicit Quorum(std::size_t count = 5)
  {
    skip_on({TopologyKind::cluster}, "a cluster is no part of a quorum");
    for (std::size_t i = 0; i < count; ++i) {
      servers.emplace_back();
    }
  }

  // rlock VERB -S … OPTIONS
  [[nodiscard]] Words words(const std::string& verb, const Words& rest) const
  {
    Words all{verb, "--no-restart-guard"};
    for (const RedisServer& server : servers) {
      all.insert(all.end(), {"-S", server.url()});
    }
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }
  [[nodiscard]] Finished rlock(const std::string& verb, const Words& rest) const
  {
    return run_rlock(words(verb, rest));
  }
  [[nodiscard]] Process start(const Words& rest) const { return start_rlock(words("run", rest)); }

  // On how many of the living servers the lock exists.
  [[nodiscard]] int held(const std::vector<std::size_t>& living, const std::string& key = "k") const
  {
    int count = 0;
    for (const std::size_t i : living) {
      count += as_int(servers[i].command({"EXISTS", key})) == 1 ? 1 : 0;
    }
    return count;
  }
  // A server that answers after the others may get the release when rlock has ended.
  void wait_until_free(const std::vector<std::size_t>& living) const
  {
    wait_until([&] { return held(living) == 0; }, "the lock is released everywhere", std::chrono::seconds{10});
  }
};

const std::vector<std::size_t> everybody{0, 1, 2, 3, 4};

std::chrono::nanoseconds time_of(const std::function<void()>& act)
{
  const Instant start = real_clock.now();
  act();
  return real_clock.now() - start;
}

// What is done to one server.
struct Trouble {
  const char* name;
  void (*make)(RedisServer&);
  void (*end)(RedisServer&);
};
const Trouble troubles[] = {
    {"killed", [](RedisServer& server) { server.kill_hard(); }, [](RedisServer&) {}},
    {"stopped", [](RedisServer& server) { server.stop_signal(); }, [](RedisServer& server) { server.cont(); }},
    {"a replica",
     [](RedisServer& server) {
       server.command({"REPLICAOF", "127.0.0.1", "1"});
     },
     [](RedisServer&) {}},
};

}  // namespace

TEST_CASE("quorum: a job runs under a lock that is on all five, and is told so")
{
  const Quorum quorum;
  const Finished run = quorum.rlock("run", {"-k", "k", "--", "sh", "-c", "echo $RLOCK_SERVER; echo $RLOCK_FENCE"});
  expect_end(run, 0, {err_is("")});
  std::string urls;
  for (const RedisServer& server : quorum.servers) {
    urls += (urls.empty() ? "" : " ") + server.url();
  }
  CHECK(run.out.starts_with(urls + "\n17"));  // and release accepts it
  quorum.wait_until_free(everybody);
  const Finished again =
      run_rlock({"run", "--no-restart-guard", "-k", "k", "--", "true"}, {.env = {{"RLOCK_SERVER", urls}}});
  CHECK(again.code == 0);
}

TEST_CASE("quorum: the runs of a lock that is held stay, also on a server that has not got the grant")
{
  const Quorum quorum(3);
  const std::vector<std::size_t> all{0, 1, 2};
  CHECK(quorum.rlock("run", {"-k", "k", "--", "true"}).code == 0);
  quorum.wait_until_free(all);
  const Process holder = quorum.start({"-k", "k", "--", "sleep", "100"});
  wait_until([&] { return quorum.held(all) == 3; }, "the lock is held everywhere");
  quorum.servers[2].command({"DEL", "k", "rlock:holder:{k}"});
  CHECK(quorum.rlock("forget", {"k"}).code == 1);
  CHECK(as_int(quorum.servers[2].command({"EXISTS", "rlock:events:{k}"})) == 1);
}

TEST_CASE("quorum: with three of five in trouble it is 69 within the deadline, and nothing is left")
{
  for (const Trouble& trouble : troubles) {
    CAPTURE(trouble.name);
    Quorum quorum;
    for (const std::size_t i : {0U, 1U, 3U}) {
      trouble.make(quorum.servers[i]);
    }
    Finished run;
    const auto took = time_of([&] { run = quorum.rlock("run", {"-n", "-k", "k", "--", "true"}); });
    expect_end(run, 69, {err_has("3 of 5 servers failed, and it takes 3")});
    CHECK(took < 3s);  // 500 ms, and the delay of a busy machine
    quorum.wait_until_free({2, 4});
    for (const std::size_t i : {0U, 1U, 3U}) {
      trouble.end(quorum.servers[i]);
    }
  }
}

TEST_CASE("quorum: a waiter is woken by the release, with two servers hung")
{
  Quorum quorum;
  quorum.servers[1].stop_signal();
  quorum.servers[4].stop_signal();
  const auto dir = make_temp_dir("quorum");
  const auto go = dir / "go";
  Process holder =
      quorum.start({"-k", "k", "--", "sh", "-c", "until test -e " + go.string() + "; do sleep 0.01; done"});
  wait_until([&] { return quorum.held({0, 2, 3}) == 3; }, "the lock is taken");
  Process waiter = quorum.start({"-k", "k", "--", "true"});
  wait_until(
      [&] {
        return has(as_text(quorum.servers[0].command({"CLIENT", "LIST", "TYPE", "pubsub"})), "sub=2");
      },
      "the waiter listens");
  const auto took = time_of([&] {
    Process({"touch", go.string()}).wait();
    CHECK(holder.wait() == success);
    CHECK(waiter.wait() == success);
  });
  CHECK(took < 5s);  // the ttl is 30 s
  quorum.servers[1].cont();
  quorum.servers[4].cont();
}

TEST_CASE("quorum: two of five killed during a job are not noticed, a third stops it before the lease is over")
{
  Quorum quorum;
  const ActivityLog activity;
  Words words{"-k", "k", "--ttl", "2s", "--kill-after", "200ms", "--"};
  for (const std::string& word : activity.stubborn_tree("job")) {
    words.push_back(word);
  }
  Process job = quorum.start(words);
  wait_until([&] { return activity.tree_beats("job"); }, "the job runs");
  quorum.servers[0].kill_hard();
  quorum.servers[3].stop_signal();
  const std::int64_t later = now_ns() + 5'000'000'000;
  wait_until([&] { return activity.jobs().at("job").last_ns > later; }, "it has run for five seconds more", 20s);
  CHECK(job.running());
  CHECK(job.err() == "");

  quorum.servers[1].kill_hard();
  const std::int64_t killed = now_ns();
  CHECK(job.wait(20s) == exited(121));
  CHECK(activity.jobs().at("job").last_ns < killed + 2'000'000'000);
  CHECK(has(job.err(), "3 of 5 servers failed"));
  quorum.servers[3].cont();
}

TEST_CASE("quorum: operators see the holder, wait for it, and can take the lock away on all")
{
  Quorum quorum;
  quorum.servers[2].kill_hard();
  Process job = quorum.start({"-k", "k", "--label", "mine", "--server-timeout", "5s", "--", "sleep", "20"});
  wait_until([&] { return quorum.held({0, 1, 3, 4}) >= 3; }, "the lock is taken");
  expect_end(quorum.rlock("status", {"k"}), 0, {out_has("mine")});
  CHECK(has(quorum.rlock("list", {}).out, "sleep 20"));
  CHECK(quorum.rlock("wait", {"-w", "200ms", "k"}).code == 75);

  Process waiting = start_rlock(quorum.words("wait", {"k"}));
  expect_end(quorum.rlock("force-unlock", {"k", "--yes"}), 0, {out_has("released by")});
  CHECK(job.wait() == exited(121));
  CHECK(waiting.wait() == success);
  quorum.wait_until_free({0, 1, 3, 4});
  CHECK(quorum.rlock("status", {"k"}).code == 1);

  quorum.servers[0].command({"HSET", "k", "dead:1", "1"});
  quorum.servers[0].command({"PEXPIRE", "k", "60000"});
  expect_end(quorum.rlock("status", {"k"}), 1, {out_has("dead:1, on too few servers to hold it")});
  CHECK(quorum.rlock("run", {"-n", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("quorum: an inner rlock on the same servers re-enters, and a keeper goes on with the lock")
{
  const Quorum quorum(3);
  Words inner = rlock_argv(quorum.words("run", {"-n", "-k", "k", "--", "true"}));
  Words outer = joined({"-k", "k", "--"}, inner);
  expect_end(quorum.rlock("run", outer), 0, {err_is("")});
  quorum.wait_until_free({0, 1, 2});

  Process watched({"sleep", "60"});
  const Finished acquired = quorum.rlock(
      "acquire", {"-k", "k", "--ttl", "6s", "--server-timeout", "5s", "--pid", std::to_string(watched.pid())});
  CHECK(acquired.code == 0);
  const auto pttl = [&] {
    std::int64_t longest = 0;  // one server may miss a renewal
    for (const RedisServer& server : quorum.servers) {
      longest = std::max(longest, as_int(server.command({"PTTL", "k"})));
    }
    return longest;
  };
  for (int renewal = 0; renewal < 3; ++renewal) {
    wait_until([&] { return pttl() < 4800; }, "the lease gets shorter");
    wait_until([&] { return pttl() > 5100; }, "the keeper renews it");
  }
  CHECK(quorum.held({0, 1, 2}) >= 2);  // a server that answered after the others may never have got the lock
  watched.signal(SIGKILL);
  watched.wait();
  wait_until([&] { return quorum.held({0, 1, 2}) == 0; }, "the keeper has let go");
}
