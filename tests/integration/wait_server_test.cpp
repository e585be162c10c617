// SPDX-License-Identifier: Apache-2.0
// --wait-server: a server that cannot be reached at the start is tried again.
#include "support/integration.h"
#include "support/paths.h"
#include "support/sentinel_group.h"
#include "support/server_state.h"
#include "support/skip.h"
#include "support/terminal.h"

#include <netdb.h>

using namespace rlock::test;

namespace {

constexpr Exit is_away = exited(69);

const RedisOptions lasting{.args = {"--appendonly", "yes", "--appendfsync", "always"}, .alone = true};

Process start(const std::string& verb, const std::string& url, const Words& words, const ProcessOptions& options = {})
{
  return start_rlock(joined({verb, "-S", url}, words), options);
}

void await_failure(const Process& process)
{
  wait_until([&] { return has(process.err(), "; trying again\n"); }, "the first failure is told");
}

// Each verb that takes or awaits a lock. `begin` returns when the server at the URL cannot be used, `end` makes it usable.
void check_verbs(const std::function<std::string()>& begin, const std::function<void()>& end,
                 const ProcessOptions& options = {})
{
  const Words job{"sh", "-c", "echo ran; exit 7"};
  const std::vector<std::pair<std::string, Words>> verbs{
      {"run", with_job({"-k", "k", "-n", "--wait-server", "5m"}, job)},
      {"run", with_job({"-k", "a", "-k", "b", "-w", "5m", "--wait-server", "5m"}, job)},
      {"run", with_job({"-k", "k", "--shards", "3", "-n", "--wait-server", "5m"}, job)},
      {"once", with_job({"-k", "k", "--for", "1h", "--wait-server", "5m"}, job)},
      {"flock", joined({"--verbose", "-n", "--wait-server", "5m", "k"}, job)},
      {"acquire", {"-k", "k", "-n", "--wait-server", "5m", "--lease", "1m"}},
      {"wait", {"-k", "k", "-n", "--wait-server", "5m"}},
  };
  for (const auto& each : verbs) {
    const std::string& verb = each.first;
    CAPTURE(verb);
    Process late = start(verb, begin(), each.second, options);
    await_failure(late);
    end();
    const bool has_job = verb != "acquire" && verb != "wait";
    CHECK(late.wait(30s) == Exit{.code = has_job ? 7 : 0, .signal = 0});
    CHECK((!has_job || late.out() == "ran\n"));
    CHECK(has(late.err(), "the server can be used again after "));
  }
}

// rlock's lookups of names fail, the first one or all.
ProcessOptions without_names(const std::string& how_long)
{
  return {.env = {{"LD_PRELOAD", RLOCK_PRELOAD_FAIL_CALL},
                  {"RLOCK_TEST_FAIL", "getaddrinfo 1 " + std::to_string(EAI_AGAIN) + " " + how_long + " runner"},
                  {"RLOCK_TEST_FAIL_FILE", (make_temp_dir("names") / "failed").string()}}};
}

}  // namespace

TEST_CASE("wait-server: each verb that takes or awaits a lock works with a server that is started late")
{
  std::optional<RedisServer> server;
  check_verbs(
      [&] {
        server.emplace(RedisOptions{.alone = true});
        server->kill_hard();
        return server->url();
      },
      [&] { server->restart(); });
}

TEST_CASE("wait-server: the same with a server that is loading its data")
{
  const auto states = server_states();
  const auto loading = std::ranges::find(states, "loading", &ServerState::name);
  std::optional<ServerStateFixture> fixture;
  check_verbs(
      [&] {
        loading->begin(fixture.emplace(loading->args));
        return fixture->server.direct_url();
      },
      [&] { loading->end(*fixture); });
}

TEST_CASE("wait-server: a host name that cannot be looked up is looked up again, until the time is over")
{
  skip_with_address_sanitizer("a program with the address sanitizer cannot be preloaded");
  const RedisServer server({.tcp = true, .alone = true});
  const std::string url = "redis://localhost:" + std::to_string(server.port());
  check_verbs(
      [&] {
        server.command({"FLUSHALL"});
        return url;
      },
      [] {}, without_names("once"));

  const Words once{"-k", "k", "--", "true"};
  const std::string why = "its name cannot be looked up now (is the network up?)";
  Process at_once = start("run", url, once, without_names("good"));
  expect_end(at_once, is_away, {err_is("rlock: cannot reach " + url + ": " + why + "\n")}, 30s);
  const auto begin = std::chrono::steady_clock::now();
  Process waited = start("run", url, joined({"--wait-server", "1s"}, once), without_names("good"));
  CHECK(waited.wait(30s) == is_away);
  CHECK(std::chrono::steady_clock::now() - begin >= 1s);
  CHECK(has(waited.err(), why + "; trying again\n"));
  CHECK(count(waited.err(), "\n") == 2);
}

TEST_CASE("wait-server: a server that is stopped, a replica or cannot write is waited for")
{
  RedisServer server({.alone = true});
  const Words words{"-k", "k", "-n", "--server-timeout", "300ms", "--wait-server", "5m", "--", "true"};
  server.stop_signal();
  Process stopped = start("run", server.url(), words);
  await_failure(stopped);
  server.cont();
  CHECK(stopped.wait(30s) == success);

  server.command({"REPLICAOF", "127.0.0.1", "1"});
  Process replica = start("run", server.url(), words);
  await_failure(replica);
  server.command({"REPLICAOF", "NO", "ONE"});
  CHECK(replica.wait(30s) == success);

  server.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  Process writes_not = start("run", server.url(), words);
  await_failure(writes_not);
  server.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
  CHECK(writes_not.wait(30s) == success);
}

TEST_CASE("wait-server: a fail-over at the time of the job does not skip the job")
{
  SentinelGroup group;
  RedisServer& master = group.master();
  master.kill_hard();
  Process job = start("run", group.url(),
                      {"-k", "k", "-n", "--server-timeout", "400ms", "--wait-server", "5m", "--", "echo", "ran"});
  expect_end(job, success, {out_is("ran\n"), err_has("; trying again\n")}, 60s);
}

TEST_CASE("wait-server: a quorum without a majority is waited for")
{
  std::vector<RedisServer> servers;
  for (int i = 0; i < 3; ++i) {
    servers.emplace_back(RedisOptions{.alone = true});
  }
  servers[0].kill_hard();
  servers[1].kill_hard();
  Process job = start("run", servers[0].url(),
                      {"-S", servers[1].url(), "-S", servers[2].url(), "--no-restart-guard", "-k", "k", "-n",
                       "--wait-server", "5m", "--", "echo", "ran"});
  await_failure(job);
  servers[1].restart();
  expect_end(job, success, {out_is("ran\n")}, 60s);
}

TEST_CASE("wait-server: nothing that was prepared for the first request is left meanwhile")
{
  RedisServer server({.alone = true});
  server.kill_hard();
  Process waiter = start("run", server.url(), {"-k", "k", "--wait-server", "5m", "--", "echo", "ran"});
  await_failure(waiter);
  const std::string pid = std::to_string(waiter.pid());
  wait_until([&] { return text_of("/proc/" + pid + "/task/" + pid + "/children").empty(); }, "it has no child");
  server.restart();
  expect_end(waiter, success, {out_is("ran\n")}, 30s);
}

TEST_CASE("wait-server: a nested run waits for the server of its outer run")
{
  const auto dir = make_temp_dir("nested");
  RedisServer server(lasting);
  const std::string inner = "until test -e " + (dir / "go").string() + "; do sleep 0.02; done; exec " + RLOCK_BINARY +
                            " run -S " + server.url() + " -k k -n --wait-server 5m -- echo inner";
  Process outer = start("run", server.url(), {"-k", "k", "--ttl", "2m", "--", "sh", "-c", inner});
  wait_until([&] { return is_held(server); }, "the outer run holds the lock");
  server.kill_hard();
  std::ofstream(dir / "go") << "";
  await_failure(outer);
  server.restart();
  expect_end(outer, success, {out_is("inner\n")}, 30s);
}

TEST_CASE("wait-server: a signal ends the wait, and rlock dies of it")
{
  RedisServer server({.alone = true});
  server.kill_hard();
  for (const std::string verb : {"run", "acquire"}) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      Process waiter = verb == "run" ? start(verb, server.url(), {"-k", "k", "--wait-server", "5m", "--", "true"})
                                     : start(verb, server.url(), {"-k", "k", "--wait-server", "5m", "--lease", "1m"});
      await_failure(waiter);
      waiter.signal(signal);
      CHECK(waiter.wait(30s) == died_of(signal));
    }
  }
}

TEST_CASE("wait-server: on a terminal the waiting line says why, and goes when the server answers")
{
  RedisServer server({.alone = true});
  server.kill_hard();
  TestTerminal terminal(24, 400);
  ProcessOptions options;
  options.terminal = terminal.process_side();
  Process waiter = start_on(server, {"run", "-k", "k", "--wait-server", "5m", "--", "echo", "ran"}, options);
  wait_until([&] { return has(terminal.seen(), "rlock: waiting for k: cannot reach unix:"); }, "the line says why");
  server.restart();
  CHECK(waiter.wait(30s) == success);
  CHECK(terminal.seen().ends_with("\r\x1b[Kran\r\n"));
  CHECK_FALSE(has(terminal.seen(), "trying again"));
}

TEST_CASE("wait-server: a server lost in line is asked again, with one line for its absence and one for its return")
{
  RedisServer server(lasting);
  server.command({"HSET", "k", "somebody:1", "1"});
  server.command({"PEXPIRE", "k", "600000"});
  Process waiter = start("run", server.url(), {"-k", "k", "-w", "5m", "--", "echo", "ran"});
  wait_until([&] { return as_int(server.command({"EXISTS", "rlock:queue:{k}"})) == 1; }, "it is in line");
  server.kill_hard();
  await_failure(waiter);
  server.restart();
  wait_until([&] { return has(waiter.err(), "the server can be used again after "); }, "its return is told");
  server.command({"DEL", "k"});
  CHECK(waiter.wait(30s) == success);
  const std::string text = waiter.err();
  CHECK(text.find("trying again") == text.rfind("trying again"));
}

TEST_CASE("wait-server: a server that is away for longer than a lease is asked again by who had one of several locks")
{
  const auto begin = [](RedisServer& server, const std::string& wait) {
    server.command({"HSET", "b", "somebody:1", "1"});
    server.command({"PEXPIRE", "b", "600000"});
    Process waiter = start("acquire", server.url(),
                           {"-k", "a", "-k", "b", "-w", wait, "--lease", "1s", "--server-timeout", "300ms"});
    wait_until([&] { return as_int(server.command({"EXISTS", "rlock:queue:{b}"})) == 1; }, "it is in line");
    server.kill_hard();
    return waiter;
  };
  RedisServer server({.alone = true});
  Process patient = begin(server, "5m");
  wait_until([&] { return has(patient.err(), "the lock a was lost: "); }, "the lease is over");
  std::this_thread::sleep_for(1s);  // several attempts
  CHECK(patient.running());
  server.restart();
  CHECK(patient.wait(30s) == success);

  RedisServer lost({.alone = true});
  Process hasty = begin(lost, "3s");
  CHECK(hasty.wait(30s) == is_away);
}
