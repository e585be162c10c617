// SPDX-License-Identifier: Apache-2.0
// `rlock history`, and the last run in `status`: which runs of a lock they know.
#include "support/acl_fixture.h"
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/queue_fixture.h"

#include <regex>

using namespace rlock::test;
SERVER_CASE("history: times are local with their distance from UTC, with --utc in UTC, and in JSON always")
{
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  ProcessOptions ahead;
  ahead.env["TZ"] = "XYZ-1:30";
  const std::regex local("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} \\+01:30");
  const std::regex utc("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} UTC");
  const std::regex of_json("T[0-9:]{8}\\.[0-9]{3}Z\"");
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"history", "k"}, {"events"}, {"status", "k"}}) {
    CAPTURE(verb.front());
    Words words = joined(verb, {"-S", server.url()});
    CHECK(std::regex_search(run_rlock(words, ahead).out, local));
    words.emplace_back("--utc");
    CHECK(std::regex_search(run_rlock(words, ahead).out, utc));
    words.back() = "--json";
    CHECK(std::regex_search(run_rlock(words, ahead).out, of_json));
  }
}

TEST_SUITE_BEGIN("topology-quick");

SERVER_CASE("history: a free lock shows its last run")
{
  CHECK(history_of(server).empty());
  CHECK(status_of(server).at("last_run").is_null());
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--label", "nightly", "--", "sh", "-c", "exit 3"}).code == 3);
  const auto runs = history_of(server);
  REQUIRE(outcomes(runs) == "failed 3, succeeded 0");
  CHECK(runs[0].at("key") == "k");
  CHECK(runs[0].at("command") == "sh -c 'exit 3'");
  CHECK(runs[0].at("label") == "nightly");
  CHECK(runs[0].at("host").is_string());
  CHECK(runs[0].at("user").is_string());
  CHECK(runs[0].at("duration_ms") >= 0);
  CHECK(runs[0].at("start").text().ends_with("Z"));
  CHECK(runs[0].at("fence") > runs[1].at("fence"));
  CHECK(status_of(server).at("last_run") == runs[0]);

  const Finished text = rlock_on(server, {"status", "k"});
  CHECK(text.out.starts_with("k: free\n  last run "));
  expect_has(text.out, {", failed (exit 3), by ", ", running sh -c 'exit 3' [nightly]\n"});
  const std::string table = rlock_on(server, {"history", "-k", "k"}).out;
  CHECK(table.starts_with("START "));
  CHECK(has(table, "  failed     3     "));
}

SERVER_CASE("history: a run that was busy is told with the one that held the lock")
{
  Process holder = held_run(server);
  CHECK(rlock_on(server, {"run", "-k", "k", "-n", "--", "true"}).code == 75);
  CHECK(rlock_on(server, {"run", "-k", "k", "-w", "100ms", "--label", "later", "--", "true"}).code == 75);
  CHECK(outcomes(history_of(server)) == "skipped, skipped");
  const Json held = status_of(server);
  CHECK(held.at("held") == true);
  CHECK(held.at("last_run").at("outcome") == "skipped");
  holder.signal(SIGTERM);
  holder.wait();
  const auto runs = history_of(server);
  REQUIRE(outcomes(runs) == "skipped, skipped, cancelled 143");
  CHECK(runs[0].at("label") == "later");
  CHECK(runs[0].at("duration_ms") >= 100);
  CHECK(runs[0].at("fence").is_null());
  CHECK(status_of(server).at("last_run").at("exit_code") == 143);
  CHECK(has(rlock_on(server, {"status", "k"}).out, "\n  skipped  "));
}

TEST_SUITE_END();

SERVER_CASE("history: a crontab that finds the lock busy each minute pushes no run out")
{
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  Process holder = held_run(server);
  for (int i = 0; i < 10; ++i) {
    CHECK(rlock_on(server, {"run", "-k", "k", "-n", "--", "true"}).code == 75);
  }
  CHECK(rlock_on(server, {"flock", "-n", "k", "false"}).code == 1);
  const auto runs = history_of(server);
  REQUIRE(outcomes(runs) == "skipped, skipped, succeeded 0");
  CHECK(runs[0].at("times") == 1);
  CHECK(runs[1].at("times") == 10);
  CHECK(has(rlock_on(server, {"history", "k"}).out, "skipped 10 times"));
}

SERVER_CASE("history: followers of events see each skip once")
{
  Process holder = held_run(server);
  REQUIRE(rlock_on(server, {"run", "-k", "k", "-n", "--", "true"}).code == 75);
  Process follower = start_on(server, {"events", "--json", "--follow", "-k", "k"});
  wait_until([&] { return json_lines(follower.out()).size() == 2; }, "what was is told");
  for (std::size_t more = 1; more < 4; ++more) {
    REQUIRE(rlock_on(server, {"run", "-k", "k", "-n", "--", "true"}).code == 75);
    wait_until([&] { return json_lines(follower.out()).size() == 2 + more; }, "the next skip is told");
  }
  const auto events = json_lines(follower.out());
  CHECK(events[0].at("event") == "acquired");
  for (std::size_t i = 1; i < events.size(); ++i) {
    CHECK(events[i].at("event") == "skipped");
    CHECK(events[i].at("times") == i);
    CHECK(has(events[i].at("by").text(), "(pid "));
  }
}

TEST_CASE("history: a skip names the holder of another kind, and the foreign one of each kind")
{
  const std::string java = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
  const std::string permit = "0123456789abcdef0123456789abcdef";
  struct Row {
    std::vector<Words> written;
    Words wish;
    std::string holder;
  };
  const Words reader_timeout{"SET", "{k}:" + java + ":rwlock_timeout:1", "1", "PX", "60000"};
  const std::vector<Row> rows{
      {{{"HSET", "k", java, "1"}}, {}, java},
      {{{"HSET", "k", java, "1"}}, {"-x"}, java},
      {{{"HSET", "k", java, "1"}}, {"-s"}, java},
      {{{"HSET", "k", "mode", "write", java + ":write", "1"}}, {}, java},
      {{{"HSET", "k", "mode", "write", java + ":write", "1"}}, {"-s"}, java},
      {{{"HSET", "k", "mode", "read", java, "1"}, reader_timeout}, {}, java},
      {{{"HSET", "k", "mode", "read", java, "1"}, reader_timeout}, {"-x"}, java},
      {{{"SET", "k", "theirs"}}, {"--format", "string"}, "theirs"},
      {{{"SET", "k", "0"}, {"ZADD", "{k}:timeout", "4000000000000", permit}}, {"--permits", "1"}, permit},
  };
  for (const Row& row : rows) {
    CAPTURE(row.written.front());
    CAPTURE(row.wish);
    const RedisServer server;
    for (const Words& command : row.written) {
      server.command(command);
    }
    if (row.written.front().front() == "HSET") {
      server.command({"PEXPIRE", "k", "60000"});
    }
    CHECK(rlock_on(server, joined(joined({"run", "-k", "k", "-n"}, row.wish), {"--", "true"})).code == 75);
    const auto events = json_lines(rlock_on(server, {"events", "--json", "k"}).out);
    REQUIRE(events.size() == 1);
    CHECK(events[0].at("event") == "skipped");
    CHECK(events[0].at("by") == row.holder);
  }

  const RedisServer server;
  Process writer = start_run(server.url(), {"-k", "k", "-x"}, {"sleep", "60"});
  wait_until([&] { return rlock_on(server, {"status", "k"}).code == 0; }, "it is held");
  CHECK(rlock_on(server, {"run", "-k", "k", "-n", "--", "true"}).code == 75);
  const auto events = json_lines(rlock_on(server, {"events", "--json", "k"}).out);
  CHECK(events.back().at("event") == "skipped");
  CHECK(has(events.back().at("by").text(), "(pid " + std::to_string(writer.pid()) + ")"));
}

SERVER_CASE("history: a run of several locks that does not get all of them is no run of the others")
{
  Process holder = held_run(server);
  CHECK(rlock_on(server, {"run", "-k", "a", "-k", "k", "-n", "--", "true"}).code == 75);
  CHECK(history_of(server, "a").empty());
  CHECK(outcomes(history_of(server)) == "skipped");
}

TEST_CASE("history: a lock that was lost while the run waited for another one had no run")
{
  for (const Words& gone : {Words{"a"}, Words{"a", "rlock:events:{a}", "rlock:holder:{a}"}}) {
    CAPTURE(gone.size());
    const RedisServer server;
    Process holder = held_run(server);
    Process waiter = held_run(server, {"-k", "a", "-k", "k", "-w", "1s"}, {"true"});
    server.command(joined({"DEL"}, gone));
    CHECK(waiter.wait() == Exit{75});
    CHECK(outcomes(history_of(server, "a")) == "");
    CHECK(outcomes(history_of(server)) == "skipped");
  }
}

SERVER_CASE("history: of a nested run the outer one is told")
{
  Words words{"run", "-k", "k", "--", "sh", "-c", "\"$@\"; exit 5", "sh"};
  const Words nested = rlock_argv({"run", "-S", server.url(), "-k", "k", "--", "false"});
  words.insert(words.end(), nested.begin(), nested.end());
  CHECK(rlock_on(server, words).code == 5);
  CHECK(outcomes(history_of(server)) == "failed 5");
}

SERVER_CASE("history: of once, those that ran")
{
  REQUIRE(rlock_on(server, {"once", "-k", "k", "--for", "1h", "--", "false"}).code == 1);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(rlock_on(server, {"once", "-k", "k", "--for", "1h", "--", "true"}).code == 0);
  }
  CHECK(outcomes(history_of(server)) == "succeeded 0, failed 1");
}

SERVER_CASE("history: waiters of once that share a success are no runs")
{
  const Words words = rlock_argv({"once", "-S", server.url(), "-k", "k", "--for", "1h", "--", "sleep", "1"});
  std::vector<Process> all;
  for (int i = 0; i < 3; ++i) {
    all.emplace_back(words);
  }
  expect_ends(all);
  CHECK(outcomes(history_of(server)) == "succeeded 0");
}

TEST_CASE("history: readers, permits and strings")
{
  for (const Words& kind : {Words{"-s"}, Words{"-x"}, Words{"--permits", "2"}, Words{"--format", "string"}}) {
    CAPTURE(kind.front());
    const RedisServer server;
    const Words words = joined({"run", "-k", "k", "-n"}, with_job(kind, {"sh", "-c", "exit 6"}));
    REQUIRE(rlock_on(server, words).code == 6);
    Process holder = start_rlock(joined({"run", "-S", server.url(), "-k", "k"}, with_job(kind, {"sleep", "60"})));
    wait_until([&] { return status_of(server).at("held").is_true(); }, "it is held");
    const bool is_shared = kind.front() == "-s" || kind.front() == "--permits";
    CHECK(rlock_on(server, words).code == (is_shared ? 6 : 75));
    CHECK(outcomes(history_of(server)) == (is_shared ? "failed 6, failed 6" : "skipped, failed 6"));
    holder.signal(SIGKILL);
    wait_until([&] { return !status_of(server).at("held").is_true(); }, "its guardian has released it");
    CHECK(outcomes(history_of(server)) == (is_shared ? "failed 6, lost, failed 6" : "skipped, lost, failed 6"));
  }
}

SERVER_CASE("history: --history keeps the log, and one without it does not shorten that")
{
  const auto left = [&] { return as_int(server.command({"PTTL", "rlock:events:{k}"})); };
  constexpr std::int64_t day = 86'400'000;
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  CHECK(left() <= day / 24);
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--history", "1s", "--", "true"}).code == 0);
  CHECK(left() > day / 25);
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--history", "30d", "--", "true"}).code == 0);
  CHECK(left() > 28 * day);
  REQUIRE(rlock_on(server, {"flock", "--history", "10d", "k", "true"}).code == 0);
  REQUIRE(rlock_on(server, {"once", "-k", "k", "--for", "1s", "--", "true"}).code == 0);
  CHECK(left() > 28 * day);
  CHECK(rlock_on(server, {"run", "-k", "k", "--history", "-1", "--", "true"}).code == 64);
  REQUIRE(rlock_on(server, {"acquire", "-k", "a", "--lease", "3s", "--history", "2d"}).code == 0);
  CHECK(as_int(server.command({"PTTL", "rlock:events:{a}"})) > day);
  REQUIRE(rlock_on(server, {"once", "-k", "o", "--for", "1s", "--history", "2d", "--", "true"}).code == 0);
  CHECK(as_int(server.command({"PTTL", "rlock:events:{o}"})) > day);
}

ACL_CASE("history: a user with no more rights than rlock acl gives it has a history")
{
  fixture.allow(acl_line("app:*"));
  REQUIRE(fixture.run({"run", "-k", "app:k", "--", "true"}).code == 0);
  Process holder = fixture.start({"run", "-k", "app:k", "--", "sleep", "60"});
  wait_until([&] { return fixture.exists("app:k") == 1; }, "it is held");
  CHECK(fixture.run({"run", "-k", "app:k", "-n", "--", "true"}).code == 75);
  CHECK(fixture.run({"run", "-k", "app:k", "-n", "--", "true"}).code == 75);
  CHECK(outcomes(json_lines(fixture.run({"history", "--json", "app:k"}).out)) == "skipped, succeeded 0");
}
