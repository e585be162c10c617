// SPDX-License-Identifier: Apache-2.0
// force-unlock without --now never overlaps with the job of an rlock, whatever happened to the holder.
#include "support/activity_log.h"
#include "support/guardian_of.h"
#include "support/integration.h"
#include "support/json.h"
#include "support/relay.h"
#include "support/topology.h"

using namespace rlock::test;
namespace {

const std::vector<Words> kinds{{}, {"-s"}, {"-x"}, {"--permits", "1"}, {"--format", "string"}};

Process start(const std::string& url, const Words& options, const Words& job)
{
  return start_run(url, joined({"-k", "k"}, options), job);
}

// "free": the lock was already free.
std::string how(const Finished& forced)
{
  if (forced.code == 1) {
    return "free";
  }
  CAPTURE(forced.err);
  REQUIRE(forced.code == 0);
  return Json::parse(forced.out).at("how");
}

// The holder is hit, its lock is taken without --now, and another job follows.
void no_overlap_after(const Words& options, const std::function<void(Process&)>& strike, const Words& expected)
{
  const RedisServer server;
  const ActivityLog activity;
  const Words lease = options.empty() || options.front() != "--lease" ? Words{"--ttl", "3s"} : Words{};
  Process holder = start(server.url(), joined(lease, options), activity.stubborn_tree("victim"));
  wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
  wait_until([&] { return listening(server) > 0; }, "the holder listens");
  const Json held = Json::parse(rlock_on(server, {"status", "--json", "k"}).out);
  const std::string token = held.at("holders").at(0).at("token");
  Words wish = options;
  if (wish == Words{"-s"}) {
    wish = {"-x"};
  }
  Process next = start(server.url(), wish, activity.short_job("next", 60));
  strike(holder);

  // Not from any holder: the guardian may have released, and then the next job has the lock.
  const Finished forced = rlock_on(server, {"force-unlock", "-k", "k", "--token", token, "--grace", "300ms", "--json"});
  const std::string ended = how(forced);
  CAPTURE(ended);
  CHECK(std::find(expected.begin(), expected.end(), ended) != expected.end());
  CHECK(next.wait(20s) == success);
  const auto jobs = activity.jobs();
  REQUIRE(jobs.contains("next"));
  CHECK(overlap(jobs) == "");
  holder.signal(SIGCONT);
  holder.wait(20s);
}

void stop_runner(Process& holder) { holder.signal(SIGSTOP); }

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("force-unlock: the next job does not overlap with that of a stopped holder")
{
  no_overlap_after({}, stop_runner, {"expired"});
}

TEST_CASE("force-unlock: the next job does not overlap with that of a stopped reader or writer")
{
  no_overlap_after({"-s"}, stop_runner, {"expired"});
  no_overlap_after({"-x"}, stop_runner, {"expired"});
}

TEST_CASE("force-unlock: the next job does not overlap with that of a stopped holder of a permit or a string lock")
{
  no_overlap_after({"--permits", "1"}, stop_runner, {"expired"});
  no_overlap_after({"--format", "string"}, stop_runner, {"expired"});
}

TEST_CASE("force-unlock: the next job does not overlap when runner and guardian are stopped")
{
  no_overlap_after({},
                   [](Process& holder) {
                     const pid_t guardian = guardian_of(holder.pid());
                     holder.signal(SIGSTOP);
                     ::kill(guardian, SIGSTOP);
                   },
                   {"expired"});
}

TEST_CASE("force-unlock: the next job does not overlap when the runner is killed, or runner and guardian")
{
  // The guardian may have released the lock before force-unlock asks.
  no_overlap_after({}, [](Process& holder) { holder.signal(SIGKILL); }, {"expired", "released", "free"});
  no_overlap_after({},
                   [](Process& holder) {
                     const pid_t guardian = guardian_of(holder.pid());
                     holder.signal(SIGKILL);
                     ::kill(guardian, SIGKILL);
                   },
                   {"expired", "released"});
}

TEST_CASE("force-unlock: the next job does not overlap with a fixed lease whose holder is stopped")
{
  no_overlap_after({"--lease", "3s"}, stop_runner, {"expired"});
}

SERVER_CASE("force-unlock: a fixed lease whose rlock is stopped is not called one without a process")
{
  Process holder = start_run(server.url(), {"-k", "k", "--lease", "5s"}, {"sleep", "60"});
  wait_until([&] { return as_int(server.command({"HLEN", "rlock:holder:{k}"})) > 0; }, "it is held");
  wait_until([&] { return listening(server) > 0; }, "the holder listens");
  holder.signal(SIGSTOP);
  expect_end(rlock_on(server, {"force-unlock", "-k", "k", "--yes", "--grace", "100ms"}), 0,
             {err_has("k is revoked, its holder does not answer: the lock ends in "),
              err_has("although the holder's job may still be running")});
  holder.signal(SIGCONT);
  holder.wait();
}

TEST_CASE("force-unlock: a lock that another one takes with --now is not called released")
{
  skip_on_quorum("several servers have no event log");
  const RedisServer server;
  Process holder = start_run(server.url(), {"-k", "k"}, {"sleep", "60"});
  wait_until([&] { return listening(server) > 0; }, "the holder listens");
  stop_process(holder.pid());
  Process asks = start_on(server, {"force-unlock", "-k", "k", "--yes", "--grace", "20s", "--json"});
  wait_until([&] { return as_int(server.command({"HLEN", "rlock:force:{k}"})) > 0; }, "the holder is asked");
  CHECK(rlock_on(server, {"force-unlock", "-k", "k", "--yes", "--now"}).code == 0);
  CHECK(asks.wait(20s) == success);
  CHECK(Json::parse(asks.out()).at("how") == "broken");
  holder.signal(SIGCONT);
  holder.wait();
}

SERVER_CASE("force-unlock: the next job does not overlap when the holder is cut off from the server")
{
  Relay relay(server);
  const ActivityLog activity;
  Process holder = start(relay.url(), {"--ttl", "3s"}, activity.stubborn_tree("victim"));
  wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
  Process next = start(server.url(), {}, activity.short_job("next", 60));
  relay.answer("-LOADING the relay says so\r\n");
  CHECK(how(rlock_on(server, {"force-unlock", "-k", "k", "--yes", "--grace", "300ms", "--json"})) == "expired");
  CHECK(next.wait(20s) == success);
  CHECK(overlap(activity.jobs()) == "");
  CHECK(holder.wait(20s) == exited(121));
}

SERVER_CASE("force-unlock: a holder that is told gives its job --kill-after, and renews the lock meanwhile")
{
  const Words tidies_up{"sh", "-c", "trap 'sleep 3; echo tidy; exit 0' TERM; while :; do sleep 0.05; done"};
  Process holder = start(server.url(), {"--ttl", "2s", "--kill-after", "30s"}, tidies_up);
  wait_until([&] { return listening(server) > 0; }, "the holder listens");
  const std::string owner = as_texts(server.command({"HKEYS", "k"})).at(0);
  const Finished forced = rlock_on(server, {"force-unlock", "-k", "k", "--yes", "--grace", "500ms", "--json"});
  CHECK(how(forced) == "released");
  expect_end(holder, exited(121), {out_is("tidy\n"), err_has("force-unlocked by ")}, 5s);
}

SERVER_CASE("force-unlock: a lock that is lost while its job is being stopped does not wait for --kill-after")
{
  const Words stubborn{"sh", "-c", "trap 'echo told' TERM; while :; do sleep 0.05; done"};
  Process holder = start(server.url(), {"--ttl", "90s", "--kill-after", "90s"}, stubborn);
  wait_until([&] { return listening(server) > 0; }, "the holder listens", 30s);
  const Process forced = start_on(server, {"force-unlock", "-k", "k", "--yes", "--grace", "90s"});
  wait_until([&] { return holder.out() == "told\n"; }, "the job is told to end", 30s);
  server.command({"DEL", "k"});
  CHECK(holder.wait(45s) == exited(121));
}

TEST_CASE("force-unlock: a lock that --min-hold keeps after its job is broken at once")
{
  for (const Words& kind : kinds) {
    CAPTURE((kind.empty() ? "plain" : kind.back()));
    const RedisServer server;
    REQUIRE(rlock_on(server, joined(joined({"run", "-k", "k", "--min-hold", "60s"}, kind), {"--", "true"})).code == 0);
    REQUIRE(rlock_on(server, {"status", "-k", "k"}).code == 0);
    const auto from = std::chrono::steady_clock::now();
    const Finished forced = rlock_on(server, {"force-unlock", "-k", "k", "--yes"});
    CHECK(std::chrono::steady_clock::now() - from < 5s);  // the grace is 10 s
    expect_end(forced, 0, {out_has("whose job was over")});
    CHECK(rlock_on(server, {"status", "-k", "k"}).code == 1);
  }
}

SERVER_CASE("force-unlock: a lease of acquire is revoked without a grace, and ends with its ttl")
{
  const Finished acquired = rlock_on(server, {"acquire", "-k", "k", "--lease", "6s"});
  const std::string token = acquired.out.substr(0, acquired.out.find('\n'));
  Process forcing = start_on(server, {"force-unlock", "-k", "k", "--yes", "--grace", "60s", "--json"});
  wait_until(
      [&] {
        return as_int(server.command({"HEXISTS", "rlock:force:{k}", "revoked:" + token})) == 1;
      },
      "it is revoked");
  CHECK(rlock_on(server, {"check", "-k", "k", "--token", token}).code == 0);
  expect_end(rlock_on(server, {"renew", "-k", "k", "--token", token, "--lease", "60s"}), 1,
             {err_has("force-unlocked by ")});
  server.command({"DEL", "rlock:force:{k}"});  // a lost mark is made anew
  wait_until(
      [&] {
        return as_int(server.command({"HEXISTS", "rlock:force:{k}", "revoked:" + token})) == 1;
      },
      "it is revoked again");
  CHECK(forcing.wait(20s) == success);
  CHECK(Json::parse(forcing.out()).at("how") == "expired");
  CHECK(has(forcing.err(),
            "k is revoked, no process answers for it, as for a lease of rlock acquire: the lock ends in "));
  CHECK_FALSE(is_held(server));
}

SERVER_CASE("force-unlock: the script that holds a lease may still release it, and the next waiter has it")
{
  const Finished acquired = rlock_on(server, {"acquire", "-k", "k", "--lease", "60s"});
  const std::string token = acquired.out.substr(0, acquired.out.find('\n'));
  Process next = start(server.url(), {}, {"true"});
  Process forcing = start_on(server, {"force-unlock", "-k", "k", "--yes", "--json"});
  wait_until(
      [&] {
        return as_int(server.command({"HEXISTS", "rlock:force:{k}", "revoked:" + token})) == 1;
      },
      "it is revoked");
  CHECK(rlock_on(server, {"release", "-k", "k", "--token", token}).code == 0);
  CHECK(next.wait(20s) == success);
  CHECK(forcing.wait(20s) == success);
  CHECK(Json::parse(forcing.out()).at("how") == "released");
}

SERVER_CASE("force-unlock: a foreign holder loses the lock after the grace, and --now says that its job may still run")
{
  const std::string owner = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
  for (const Words& pace : {Words{"--grace", "300ms"}, Words{"--now"}}) {
    server.command({"HSET", "k", owner, "1"});
    server.command({"PEXPIRE", "k", "60000"});
    expect_end(rlock_on(server, joined({"force-unlock", "-k", "k", "--yes"}, pace)), 0,
               {out_has("broken; it was held by " + owner + ", whose job may still be running")});
    CHECK_FALSE(is_held(server));
  }
}

SERVER_CASE("force-unlock: a live job whose lock has lost its ttl keeps its grace")
{
  Process holder = start(server.url(), {"--ttl", "30s"}, {"sleep", "60"});
  wait_until([&] { return listening(server) > 0; }, "the holder listens");
  server.command({"PERSIST", "k"});
  CHECK(how(rlock_on(server, {"force-unlock", "-k", "k", "--yes", "--json"})) == "released");
  CHECK(holder.wait(5s) == exited(121));
}

TEST_SUITE_END();
