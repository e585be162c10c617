// SPDX-License-Identifier: Apache-2.0
// --sync: a lock counts only when replicas have it.
#include "engine/lock_keys.h"
#include "support/integration.h"
#include "support/relay.h"

#include <atomic>

using namespace rlock::test;

namespace {

struct Pair {
  RedisServer master{{.args = {"--repl-diskless-sync-delay", "0"}, .tcp = true}};
  RedisServer replica{{.args = {"--replicaof", "127.0.0.1", std::to_string(master.port())}}};

  Pair()
  {
    wait_until([&] { return as_int(master.command({"WAIT", "1", "10"})) == 1; }, "the replica follows", 30s);
  }
  [[nodiscard]] bool held() const { return as_int(master.command({"EXISTS", "k"})) == 1; }
  [[nodiscard]] bool somebody_waits_for_replicas() const
  {
    return has(as_text(master.command({"CLIENT", "LIST"})), "cmd=wait");
  }
};

// A pair whose master is demoted between the grant and WAIT, as by a fail-over.
struct DemotedPair : Pair {
  Relay relay{master};
  std::atomic<bool> is_demoted = false;

  void demote_before_wait()
  {
    relay.before_next("\r\nWAIT\r\n", [this] {
      master.command({"REPLICAOF", "127.0.0.1", "1"});
      master.command({"CONFIG", "RESETSTAT"});
      is_demoted = true;
    });
  }
  [[nodiscard]] bool has_refused_to_wait() const
  {
    return has(as_text(master.command({"INFO", "commandstats"})), "cmdstat_wait:");
  }
};

void needs_one_replica()
{
  skip_on({TopologyKind::cluster}, "a replica is told its master another way there");
  skip_on_quorum("each of its servers would be a replica of the same master");
}

void needs_a_socket_and_no_secret()
{
  skip_on({TopologyKind::tcp, TopologyKind::tls, TopologyKind::acl, TopologyKind::sentinel, TopologyKind::cluster,
           TopologyKind::quorum3, TopologyKind::quorum5},
          "a relay stands before the server's socket");
}

}  // namespace

TEST_CASE("sync: the job starts when the replica has the lock, and not before")
{
  needs_one_replica();
  Pair pair;
  const auto ran = make_temp_dir("sync") / "ran";
  pair.replica.stop_signal();
  Process job = start_rlock({"run", "-S", pair.master.url(), "-k", "k", "--sync", "1", "--server-timeout", "40s",
                             "--ttl", "2m", "--", "touch", ran.string()});
  wait_until([&] { return pair.held() && pair.somebody_waits_for_replicas(); }, "it waits for the replica");
  CHECK_FALSE(std::filesystem::exists(ran));
  pair.replica.cont();
  expect_end(job, success, {err_is("")}, 30s);
  CHECK(std::filesystem::exists(ran));
  CHECK_FALSE(pair.held());
}

TEST_CASE("sync: a replica that hangs, or is not there, is 69, and the lock is given back")
{
  needs_one_replica();
  Pair pair;
  pair.replica.stop_signal();
  const auto run = [&](const std::string& replicas) {
    return run_rlock(
        {"run", "-S", pair.master.url(), "-k", "k", "--sync", replicas, "--server-timeout", "1s", "--", "true"});
  };
  expect_end(run("1"), 69, {err_has("0 of the 1 replicas of --sync 1 had the lock k within 500ms: it was given back")});
  CHECK_FALSE(pair.held());

  pair.replica.cont();
  pair.master.command({"SET", "probe", "1"});  // WAIT alone succeeds on a connection that has written nothing
  wait_until([&] { return as_int(pair.replica.command({"EXISTS", "probe"})) == 1; }, "the replica follows again", 30s);
  expect_end(run("2"), 69, {err_has("1 of the 2 replicas of --sync 2")});
  CHECK_FALSE(pair.held());
}

TEST_CASE("sync: a lock that is handed over waits for the replica as well")
{
  needs_one_replica();
  Pair pair;
  const auto dir = make_temp_dir("sync");
  const std::string go = (dir / "go").string();
  Process holder = start_rlock(
      {"run", "-S", pair.master.url(), "-k", "k", "--", "sh", "-c", "until test -e " + go + "; do sleep 0.01; done"});
  wait_until([&] { return pair.held(); }, "the lock is taken");
  Process waiter = start_rlock({"run", "-S", pair.master.url(), "-k", "k", "--sync", "1", "--server-timeout", "40s",
                                "--ttl", "2m", "--", "touch", (dir / "ran").string()});
  wait_until([&] { return as_int(pair.master.command({"ZCARD", "rlock:queue:{k}"})) == 1; }, "one waits");
  pair.replica.stop_signal();
  Process({"touch", go}).wait();
  CHECK(holder.wait() == success);
  wait_until([&] { return pair.somebody_waits_for_replicas(); }, "it waits for the replica");
  CHECK_FALSE(std::filesystem::exists(dir / "ran"));
  pair.replica.cont();
  CHECK(waiter.wait(30s) == success);
  CHECK(std::filesystem::exists(dir / "ran"));
}

TEST_CASE("sync: a lock that was given back once and is lost later is not taken for released")
{
  needs_one_replica();
  Pair pair;
  const auto dir = make_temp_dir("sync");
  const std::string go = (dir / "go").string();
  const std::string end = (dir / "end").string();
  Process holder = start_rlock(
      {"run", "-S", pair.master.url(), "-k", "k", "--", "sh", "-c", "until test -e " + go + "; do sleep 0.01; done"});
  wait_until([&] { return pair.held(); }, "the lock is taken");
  Process job = start_rlock({"run", "-S", pair.master.url(), "-k", "k", "--sync", "1", "--server-timeout", "1s", "--",
                             "sh", "-c", "echo on; until test -e " + end + "; do sleep 0.01; done"});
  wait_until([&] { return as_int(pair.master.command({"ZCARD", "rlock:queue:{k}"})) == 1; }, "one waits");
  pair.replica.stop_signal();
  Process({"touch", go}).wait();
  CHECK(holder.wait() == success);
  const std::string events = LockKeys(*LockName::parse("k")).events;
  wait_until([&] { return as_int(pair.master.command({"LLEN", events})) >= 3; }, "it was taken and given back", 30s);
  pair.replica.cont();
  wait_until([&] { return job.out() == "on\n"; }, "the job runs", 30s);
  pair.master.command({"DEL", "k"});
  Process({"touch", end}).wait();
  CHECK(job.wait(30s) == exited(121));
}

TEST_CASE("sync: acquire returns when the replica has the lock, and not before")
{
  needs_one_replica();
  Process watched({"sleep", "60"});
  for (const std::vector<std::string>& lasts :
       {std::vector<std::string>{"--lease", "2m"}, {"--ttl", "2m", "--pid", std::to_string(watched.pid())}}) {
    CAPTURE(lasts.front());
    Pair pair;
    pair.replica.stop_signal();
    Words words =
        joined({"acquire", "-S", pair.master.url(), "-k", "k", "--sync", "1", "--server-timeout", "40s"}, lasts);
    Process acquire = start_rlock(words);
    wait_until([&] { return pair.held() && pair.somebody_waits_for_replicas(); }, "it waits for the replica");
    CHECK(acquire.out() == "");
    pair.replica.cont();
    expect_end(acquire, success, {err_is("")}, 30s);
    const std::string token = acquire.out().substr(0, acquire.out().find('\n'));
    CHECK(run_rlock({"release", "-S", pair.master.url(), "-k", "k", "--token", token}).code == 0);
    CHECK_FALSE(pair.held());
  }
  watched.signal(SIGTERM);
}

TEST_CASE("sync: a master that is demoted between the grant and WAIT is 69, and no job runs")
{
  needs_a_socket_and_no_secret();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "-n", "-k", "k", "--sync", "1", "--", "echo", "ran"},
        {"acquire", "-n", "-k", "k", "--sync", "1", "--lease", "1m"}}) {
    CAPTURE(words.front());
    DemotedPair pair;
    pair.demote_before_wait();
    std::vector<std::string> all = words;
    all.insert(all.begin() + 1, {"-S", pair.relay.url()});
    expect_end(
        run_rlock(all), 69,
        {out_is(""), err_has("WAIT cannot be used with replica instances"), err_has("(it has become a replica)")});
    CHECK(pair.is_demoted);
  }
}

TEST_CASE("sync: a waiter rides out a master that is demoted between the grant and WAIT")
{
  needs_a_socket_and_no_secret();
  DemotedPair pair;
  const std::string go = (make_temp_dir("sync") / "go").string();
  Process holder = start_rlock(
      {"run", "-S", pair.master.url(), "-k", "k", "--", "sh", "-c", "until test -e " + go + "; do sleep 0.01; done"});
  wait_until([&] { return pair.held(); }, "the lock is taken");
  Process waiter = start_rlock(
      {"run", "-S", pair.relay.url(), "-k", "k", "-w", "60s", "--sync", "1", "--ttl", "3s", "--", "echo", "ran"});
  wait_until([&] { return as_int(pair.master.command({"ZCARD", "rlock:queue:{k}"})) == 1; }, "one waits");
  pair.demote_before_wait();
  Process({"touch", go}).wait();
  CHECK(holder.wait() == success);
  wait_until([&] { return pair.is_demoted.load() && pair.has_refused_to_wait(); },
             "the master is demoted, and WAIT fails");
  CHECK(waiter.out() == "");
  pair.master.command({"REPLICAOF", "NO", "ONE"});
  expect_end(waiter, success, {out_is("ran\n")}, 40s);
}
