// SPDX-License-Identifier: Apache-2.0
// `rlock history`: how runs ended, also those that were killed or lost their lock.
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/queue_fixture.h"
#include "support/script.h"

using namespace rlock::test;
SERVER_CASE("history: stopped runs")
{
  CHECK(rlock_on(server, {"run", "-k", "k", "--max-runtime", "50ms", "--", "sleep", "60"}).code == 124);
  CHECK(outcomes(history_of(server)) == "timed_out 124");
  CHECK(rlock_on(server, {"run", "-k", "k", "--lease", "1s", "--", "sleep", "60"}).code == 124);
  CHECK(outcomes(history_of(server)) == "timed_out 124, timed_out 124");

  Process forced = held_run(server);
  CHECK(rlock_on(server, {"force-unlock", "-k", "k", "--yes"}).code == 0);
  CHECK(forced.wait() == Exit{121});
  CHECK(history_of(server)[0].at("outcome") == "forced");
  CHECK(history_of(server)[0].at("exit_code") == 121);

  Process taken = held_run(server);
  CHECK(rlock_on(server, {"force-unlock", "-k", "k", "--yes", "--now"}).code == 0);
  CHECK(taken.wait() == Exit{121});
  CHECK(history_of(server)[0].at("outcome") == "forced");
  CHECK(history_of(server).size() == 4);
}

SERVER_CASE("history: a job that was over before its lease, on a server that stood still until the lease was over")
{
  const auto may_end = make_temp_dir("job") / "may_end";
  const Words job{"sh", "-c", "until [ -e \"$1\" ]; do sleep 0.02; done", "sh", may_end.string()};
  constexpr Millis ttl{2000};
  const Words options{"-v", "--ttl", std::to_string(ttl.count()) + "ms"};
  const auto let_lease_end = [&] {
    server.stop_signal();
    std::ofstream{may_end};
    std::this_thread::sleep_for(ttl);  // the last lease began before
    server.cont();
    std::filesystem::remove(may_end);
  };

  Process holder = held_run(server, options, job);
  Process next = start_run(server.url(), {"-k", "k"}, {"sleep", "60"});
  wait_until([&] { return status_of(server).at("waiting").size() == 1; }, "it waits");
  let_lease_end();
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK(has(holder.err(), "the lease of k was over before the lock could be released; the job had ended before"));
  wait_until([&] { return status_of(server).at("holders").size() == 1; }, "the next one has the lock");
  next.signal(SIGTERM);
  next.wait();
  CHECK(outcomes(history_of(server)) == "cancelled 143, succeeded 0");

  Words once = joined({"once", "-k", "o", "--for", "1h"}, options);
  once.push_back("--");
  once.insert(once.end(), job.begin(), job.end());
  Process of_once = start_on(server, once);
  wait_until([&] { return is_held(server, "o"); }, "once has the lock");
  let_lease_end();
  CHECK(of_once.wait() == success);
  CHECK(rlock_on(server, {"once", "-k", "o", "--for", "1h", "--", "false"}).code == 0);
}

SERVER_CASE("history: a lost lock")
{
  Process holder = held_run(server, {"--ttl", "3s"});
  server.command({"DEL", "k"});
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  CHECK(holder.wait() == Exit{121});
  CHECK(outcomes(history_of(server)) == "succeeded 0, lost");
}

SERVER_CASE("history: a fixed lease that its rlock called lost, because it was stopped beyond its end")
{
  Process holder = held_run(server, {"--lease", "1s"});
  Process next = start_run(server.url(), {"-k", "k"}, {"sleep", "60"});
  const std::string first = status_of(server).at("holders").at(0).at("token");
  holder.signal(SIGSTOP);
  wait_until(
      [&] {
        const Json holders = status_of(server).at("holders");
        return !holders.empty() && holders.at(0).at("token") != first;
      },
      "the next one has the lock");
  holder.signal(SIGCONT);
  REQUIRE(holder.wait() == Exit{121});
  next.signal(SIGTERM);
  next.wait();
  CHECK(outcomes(history_of(server)) == "cancelled 143, lost");
  CHECK(history_of(server)[1].at("duration_ms") == 1000);
}

SERVER_CASE("history: a run that was lost with all data of the server")
{
  Process holder = held_run(server, {"--ttl", "300ms", "--label", "x"});
  const Json begun = status_of(server);
  server.command({"FLUSHALL"});
  CHECK(holder.wait() == Exit{121});
  const auto runs = history_of(server);
  REQUIRE(outcomes(runs) == "lost");
  CHECK(runs[0].at("label") == "x");
  CHECK(runs[0].at("fence") == begun.at("fence"));
  CHECK(runs[0].at("duration_ms").is_number());
  const Finished events = rlock_on(server, {"events", "--json", "k"});
  CHECK_MESSAGE(has(events.out, "\"event\":\"lost\""), events.out);

  // A job that is over before its lock is asked for again.
  CHECK(rlock_on(server, {"run", "-k", "k", "--", "redis-cli", "-s", server.socket_path().string(), "FLUSHALL"}).code ==
        121);
  CHECK(outcomes(history_of(server)) == "lost");
}

SERVER_CASE("history: a lock for a process that was lost with all data of the server")
{
  Process watched({"sleep", "1000"});
  const std::string pid = std::to_string(watched.pid());
  const Finished taken = succeeded(rlock_on(server, {"acquire", "-k", "k", "--pid", pid, "--ttl", "300ms", "--json"}));
  server.command({"FLUSHALL"});
  CHECK(watched.wait() == died_of(SIGTERM));
  wait_until([&] { return outcomes(history_of(server)) == "lost"; }, "the keeper has noted it");
  CHECK(history_of(server)[0].at("fence") == Json::parse(taken.out).at("fence"));
}

TEST_CASE("history: a waiter that is killed as it gets the lock is no lost run")
{
  QueueFixture fixture;
  Process holder = fixture.hold("30s");
  fixture.add_waiter();
  fixture.await_subscriptions();
  Process& waiter = fixture.waiters.front();
  waiter.signal(SIGSTOP);
  holder.signal(SIGTERM);
  holder.wait();
  wait_until([&] { return as_int(fixture.server.command({"EXISTS", "k"})) == 0; }, "its claim is over");
  CHECK(outcomes(history_of(fixture.server)) == "?, cancelled 143");
  REQUIRE(rlock_on(fixture.server, {"run", "-k", "k", "--", "true"}).code == 0);
  CHECK(outcomes(history_of(fixture.server)) == "succeeded 0, ?, cancelled 143");
  CHECK(has(rlock_on(fixture.server, {"history", "k"}).out, "  unconfirmed  -  "));
  waiter.signal(SIGCONT);
  CHECK(waiter.wait() == Exit{0});
  CHECK(outcomes(history_of(fixture.server)) == "succeeded 0, succeeded 0, cancelled 143");
}

SERVER_CASE("history: the first of many readers that get the lock at once confirms it")
{
  Process writer = held_run(server, {"-x"});
  std::vector<Process> readers;
  for (int i = 0; i < 12; ++i) {
    readers.push_back(start_run(server.url(), {"-k", "k", "-s"}, {"sleep", "60"}));
  }
  wait_until([&] { return status_of(server).at("waiting").size() == 12; }, "all wait");
  writer.signal(SIGTERM);
  writer.wait();
  const auto confirmed = [&] {
    return std::ranges::any_of(as_texts(server.command({"LRANGE", "rlock:events:{k}", "0", "-1"})),
                               [](const std::string& entry) { return has(entry, "confirmed"); });
  };
  wait_until(confirmed, "the log says so");
}

SERVER_CASE("history: a command that cannot be executed")
{
  const Words missing{"run", "-k", "k", "--", "/nonexistent/job"};
  CHECK(rlock_on(server, missing).code == 127);
  CHECK(rlock_on(server, missing).code == 127);
  CHECK(rlock_on(server, {"run", "-k", "k", "--", "/"}).code == 126);
  const auto runs = history_of(server);
  REQUIRE(outcomes(runs) == "failed 126, failed 127");
  CHECK(runs[1].at("times") == 2);
  CHECK(has(rlock_on(server, {"history", "k"}).out, "  failed 2 times  127  "));
  CHECK_FALSE(is_held(server));
}

SERVER_CASE("history: a run whose rlock was killed is lost, and its exit code is unknown")
{
  const std::string begin = "redis-cli -s " + server.socket_path().string() + " SET began 1; exec sleep 60";
  Process holder = held_run(server, {"--ttl", "30s"}, {"sh", "-c", begin});
  wait_until([&] { return is_held(server, "began"); }, "its job has begun");
  holder.signal(SIGKILL);
  wait_until([&] { return !status_of(server).at("held").is_true(); }, "the guardian has released the lock");
  CHECK(outcomes(history_of(server)) == "lost");
  CHECK(history_of(server)[0].at("duration_ms").is_number());

  REQUIRE(rlock_on(server, {"acquire", "-k", "k", "--lease", "100ms"}).code == 0);
  wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 0; }, "its lease is over");
  CHECK(outcomes(history_of(server)) == "timed_out, lost");
}

SERVER_CASE("history: a script tells its exit code when it releases")
{
  const auto released_with = [&](const Words& options) {
    const Finished taken = succeeded(rlock_on(server, {"acquire", "-k", "k", "--lease", "1m"}));
    const std::string token = taken.out.substr(0, taken.out.size() - 1);
    CHECK(rlock_on(server, joined({"release", "-k", "k", "--token", token}, options)).code == 0);
    return outcomes({history_of(server).at(0)});
  };
  CHECK(released_with({"--exit-code", "3"}) == "failed 3");
  CHECK(released_with({"--exit-code", "0"}) == "succeeded 0");
  CHECK(released_with({}) == "?");
  expect_end(rlock_on(server, {"release", "-k", "k", "--token", "x", "--exit-code", "256"}), 64,
             {err_has("--exit-code")});
}

SERVER_CASE("history: how the process of a keeper ended, as far as the kernel tells")
{
  const std::filesystem::path dir = make_temp_dir("keeper-code");
  const auto ended = [&](const std::string& end) {
    std::filesystem::remove(dir / "told");
    const std::string rlock = rlock_program().string();
    std::ofstream(dir / "script") << rlock + " acquire -S " + server.url() + " -k k --pid $$ --export" +
                                         " --notify 'echo $RLOCK_OUTCOME $RLOCK_EXIT_CODE >>" +
                                         (dir / "told").string() + "' >lock; . ./lock; " + end + "\n";
    // Nobody asks for the end of the script until the keeper has seen it.
    Process parent({"sh", "-c", "sh ./script & exec sleep 60"}, {.env = {}, .cwd = dir, .input = {}});
    wait_until([&] { return !text_of(dir / "told").empty(); }, "the keeper has told", 30s);
    return text_of(dir / "told") + outcomes({history_of(server).at(0)});
  };
  CHECK(ended("exit 3") == "failed 3\nfailed 3");
  CHECK(ended("exit 0") == "succeeded 0\nsucceeded 0");
  CHECK(ended("kill -KILL $$") == "failed 137\nfailed 137");
  CHECK(ended(rlock_program().string() + " release --exit-code 4; exit 0") == "failed 4\nfailed 4");
}

SERVER_CASE("history: who forced a run, and why")
{
  Process holder = held_run(server);
  ProcessOptions as_ann;
  as_ann.env["SUDO_USER"] = "ann";
  const Finished forced = run_rlock(
      {"force-unlock", "-S", server.url(), "-k", "k", "--yes", "--json", "--reason", "moving the database: 14:05"},
      as_ann);
  CHECK(forced.code == 0);
  CHECK(Json::parse(forced.out).at("reason") == "moving the database: 14:05");
  CHECK(holder.wait() == Exit{121});
  const std::string text = holder.err();
  expect_has(text, {"the lock k was force-unlocked by ann as ", "): moving the database: 14:05"});
  const Json run = history_of(server)[0];
  CHECK(run.at("reason") == "moving the database: 14:05");
  CHECK(run.at("forced_by").text().starts_with("ann as "));
  CHECK(has(rlock_on(server, {"history", "k"}).out, "(force-unlocked by ann as "));
  const auto events = json_lines(rlock_on(server, {"events", "--json", "k"}).out);
  CHECK(events.back().at("reason") == "moving the database: 14:05");
  CHECK(rlock_on(server, {"force-unlock", "k", "--yes", "--reason", std::string(257, 'x')}).code == 64);
}

SERVER_CASE("history: the person behind sudo is named with the user")
{
  ProcessOptions as_ann;
  as_ann.env["SUDO_USER"] = "ann";
  const Words words{"run", "-S", server.url(), "-k", "k", "--", "sleep", "60"};
  Process holder = start_rlock(words, as_ann);
  wait_until([&] { return is_held(server); }, "it is held", 30s);
  const Json held = status_of(server).at("holders").at(0);
  CHECK(held.at("sudo_user") == "ann");
  const std::string user = held.at("user");
  CHECK(has(rlock_on(server, {"status", "k"}).out, "ann as " + user + "@"));
  CHECK(has(rlock_on(server, {"list"}).out, "ann as " + user + "@"));
  CHECK(has(rlock_on(server, {"events", "k"}).out, "ann as " + user + "@"));
  holder.signal(SIGTERM);
  holder.wait();
  CHECK(history_of(server)[0].at("sudo_user") == "ann");
  CHECK(has(rlock_on(server, {"history", "k"}).out, "ann as " + user + "@"));
  as_ann.env["SUDO_USER"] = user;
  Process own = start_rlock(words, as_ann);
  wait_until([&] { return is_held(server); }, "it is held", 30s);
  CHECK(status_of(server).at("holders").at(0).at("sudo_user").is_null());
}
