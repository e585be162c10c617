// SPDX-License-Identifier: Apache-2.0
// The runs of many locks, and of a long time: `history` with globs and filters, `list --all`, `list --overdue`, --every, `forget`, and
// the list of runs that outlives the event log.
#include "base/clock.h"
#include "base/shown_time.h"
#include "lock/kept_runs.h"
#include "stores/open.h"
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/limits.h"
#include "support/queue_fixture.h"
#include "support/script.h"

using namespace rlock::test;
namespace {

int run_under(const RedisServer& server, const std::string& key, std::vector<std::string> options, int code)
{
  return rlock_on(server, joined({"run", "-k", key}, with_job(options, {"sh", "-c", "exit " + std::to_string(code)})))
      .code;
}

std::string keys_in(const std::string& lines)
{
  std::string keys;
  for (const Json& line : json_lines(lines)) {
    keys += (keys.empty() ? "" : " ") + line.at("key").text();
  }
  return keys;
}

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

TEST_CASE("history: a month of runs every five minutes takes less than 2 MB of the server, and none is forgotten" *
          doctest::test_suite("topology"))
{
  skip_on_databases("only a Redis server tells the memory of a key");
  skip_on_quorum("one server is measured");
  const RedisServer server;
  const BootClock clock;
  SystemRng rng;
  const auto opened = open_store({.endpoints = {*parse_url(server.direct_url())}}, clock, StopToken::never());
  REQUIRE(opened);
  LockStore& store = **opened;
  constexpr int runs = 30 * 24 * 12;
  constexpr int failing = 4000;
  constexpr int runs_for_a_copy = 6;
  constexpr Millis month = std::chrono::days{30};
  const LockSpec spec{.name = *LockName::parse("k"),
                      .kind = Plain{},
                      .ttl = 30s,
                      .who = {.host = "web1.example.org",
                              .user = "backup",
                              .command = "/usr/local/bin/backup --all --target s3://bucket/daily",
                              .history = month},
                      .once = {}};
  for (int run = 0; run < runs; ++run) {
    LockSpec own = spec;
    own.who.pid = 1000 + run;
    own.who.since_ms = wall_clock_ms();
    const Owner owner = Owner::fresh(rng, 1000 + run);
    const auto granted = store.acquire(own, owner, {}, soon());
    REQUIRE(granted);
    REQUIRE(store.release(own, owner, {.result = {.exit_code = run == failing ? 1 : 0}}, soon()));
    if (run % runs_for_a_copy == 0) {
      REQUIRE(store.keep_runs(spec.name, month, {.clock = clock, .timeout = 10s, .whole = soon()}));
    }
  }
  std::int64_t bytes = 0;
  for (const char* key : {"rlock:runs:{k}", "rlock:events:{k}"}) {
    bytes += as_int(server.command({"MEMORY", "USAGE", key, "SAMPLES", "0"}));
  }
  MESSAGE(bytes, " bytes");
  CHECK(bytes < 2'000'000);
  const auto known = store.past_runs({&spec.name, 1}, LogPart::all, {.clock = clock, .timeout = 10s, .whole = soon()});
  REQUIRE(known);
  CHECK(known->front().runs.size() == runs);
  CHECK(std::ranges::count_if(known->front().runs, is_failure) == 1);
}

SERVER_CASE("history: globs, several keys and no key name the locks, and filters the runs")
{
  CHECK(rlock_on(server, {"history"}).code == 1);
  REQUIRE(run_under(server, "job:a", {}, 0) == 0);
  REQUIRE(run_under(server, "job:b", {}, 3) == 3);
  REQUIRE(run_under(server, "other", {}, 0) == 0);
  CHECK(keys_in(rlock_on(server, {"history", "--json"}).out) == "other job:b job:a");
  CHECK(keys_in(rlock_on(server, {"history", "--json", "job:*"}).out) == "job:b job:a");
  CHECK(keys_in(rlock_on(server, {"history", "--json", "other", "-k", "job:a"}).out) == "other job:a");
  CHECK(keys_in(rlock_on(server, {"history", "--json", "--prefix", "job:", "*"}).out) == "job:b job:a");
  expect_end(rlock_on(server, {"history", "--failed", "--since", "1h"}), 0,
             {out_begins("KEY "), out_has("\njob:b "), out_lacks("job:a")});
  expect_end(rlock_on(server, {"history", "--failed", "job:a"}), 1, {err_has("no run of job:a that failed is known")});
  CHECK(rlock_on(server, {"history", "--since", "2100-01-01", "job:b"}).code == 1);
  CHECK(rlock_on(server, {"history", "--since", "2020-01-01T00:00Z", "job:b"}).code == 0);
  constexpr std::size_t minute_at = 11;  // of "2026-11-28T04:22:30Z"
  const std::string to_come = iso_utc(wall_clock_ms() + 120'000).value().substr(minute_at, 5);
  CHECK(rlock_on(server, {"history", "--utc", "--since", to_come, "job:b"}).code == 0);  // that of yesterday
  expect_end(rlock_on(server, {"history", "--since", "yesterday"}), 64,
             {err_has("--since: 'yesterday' is neither a duration nor a time (try --since 12h")});
}

SERVER_CASE("list: --all has free locks with their last success and failure, and --overdue those that are late")
{
  expect_end(rlock_on(server, {"list", "--all"}), 0, {out_is(""), err_is("rlock: the server knows no lock\n")});
  CHECK(rlock_on(server, {"list", "--all", "job:*"}).err == "rlock: the server knows no lock that matches job:*\n");
  CHECK(rlock_on(server, {"list", "--all", "--json"}).err == "");
  REQUIRE(run_under(server, "never", {"--every", "1h"}, 1) == 1);
  REQUIRE(run_under(server, "usual", {}, 0) == 0);
  REQUIRE(run_under(server, "usual", {}, 1) == 1);
  REQUIRE(run_under(server, "late", {"--every", "1s"}, 0) == 0);
  expect_end(rlock_on(server, {"list", "--all"}), 0, {out_begins("KEY ")});
  CHECK(keys_in(rlock_on(server, {"list", "--all", "--json"}).out) == "late never usual");
  const auto usual = json_lines(rlock_on(server, {"list", "--all", "--json", "us*"}).out);
  REQUIRE(usual.size() == 1);
  CHECK(usual[0].at("held") == false);
  CHECK(usual[0].at("every_ms").is_null());
  CHECK(usual[0].at("last_success").is_string());
  CHECK(usual[0].at("last_failure") >= usual[0].at("last_success"));
  CHECK(usual[0].at("skips") == 0);
  CHECK(usual[0].at("overdue").is_null());
  wait_until([&] { return rlock_on(server, {"list", "--overdue"}).code == 1; }, "a lock is overdue");
  CHECK(keys_in(rlock_on(server, {"list", "--overdue", "--json"}).out) == "late");
  CHECK(rlock_on(server, {"list", "--overdue", "--all"}).code == 1);
  CHECK(rlock_on(server, {"list", "--overdue", "--all", "-o", "prometheus"}).code == 0);
  CHECK(rlock_on(server, {"list", "--overdue", "-o", "prometheus"}).code == 0);
  CHECK(json_lines(rlock_on(server, {"list", "--all", "--json", "late"}).out)[0].at("overdue") == true);
  CHECK(json_lines(rlock_on(server, {"list", "--all", "--json", "never"}).out)[0].at("overdue") == false);
  CHECK(rlock_on(server, {"list", "--overdue", "never"}).code == 0);
  const std::string families = rlock_on(server, {"list", "--all", "-o", "prometheus"}).out;
  expect_has(families, {"rlock_overdue{key=\"late\"} 1\n", "rlock_overdue{key=\"never\"} 0\n"});
  CHECK(!has(families, "rlock_overdue{key=\"usual\"}"));
  CHECK(rlock_on(server, {"forget", "late"}).code == 0);
  CHECK(keys_in(rlock_on(server, {"list", "--all", "--json"}).out) == "never usual");
  CHECK(rlock_on(server, {"list", "--overdue"}).code == 0);
  CHECK(rlock_on(server, {"forget", "late"}).code == 1);
}

SERVER_CASE("list: --overdue with a pattern ends with 1 where no lock with --every matches, because it checked nothing")
{
  expect_end(rlock_on(server, {"list", "--overdue"}), 0,
             {err_is("rlock: the server knows no lock with --every: nothing was checked\n")});
  REQUIRE(run_under(server, "expected", {"--every", "1h"}, 0) == 0);
  REQUIRE(run_under(server, "usual", {}, 0) == 0);
  CHECK(rlock_on(server, {"list", "--overdue"}).err == "");
  expect_end(rlock_on(server, {"list", "--overdue", "exp*"}), 0, {err_is("")});
  for (const char* pattern : {"nightyl", "usual", "job:*"}) {
    expect_end(rlock_on(server, {"list", "--overdue", pattern}), 1,
               {out_is(""), err_is("rlock: the server knows no lock that matches " + std::string(pattern) +
                                   " with --every: nothing was checked\n")});
  }
  CHECK(rlock_on(server, {"list", "--overdue", "--json", "nightyl"}).code == 1);
  expect_end(rlock_on(server, {"list", "--overdue", "-o", "prometheus", "nightyl"}), 0, {err_is("")});
  REQUIRE(rlock_on(server, {"forget", "expected"}).code == 0);
  CHECK(rlock_on(server, {"list", "--overdue", "expected"}).code == 1);
}

SERVER_CASE("forget: the events of a lock that is held stay")
{
  REQUIRE(run_under(server, "k", {}, 0) == 0);
  Process holder = held_run(server);
  expect_end(rlock_on(server, {"forget", "k"}), 1,
             {err_is("rlock: k is held, so its history stays until it is free\n")});
  CHECK(outcomes(history_of(server)) == "succeeded 0");
  holder.signal(SIGTERM);
  holder.wait();
  CHECK(rlock_on(server, {"forget", "--json", "k"}).out ==
        "{\"key\":\"k\",\"forgotten\":false,\"history\":true,\"permits\":false}\n");
  CHECK(history_of(server).empty());
}

SERVER_CASE("forget: says why there is nothing to forget")
{
  REQUIRE(run_under(server, "job:a", {}, 0) == 0);
  expect_end(rlock_on(server, {"forget", "job:b"}), 1,
             {err_is("rlock: there is nothing to forget: the server knows no lock job:b\n")});
  const Finished glob = rlock_on(server, {"forget", "job:*"});
  CHECK(glob.code == 1);
  CHECK(glob.err ==
        "rlock: there is nothing to forget: the server knows no lock job:* (forget takes a name, not a pattern)\n");
  CHECK(rlock_on(server, {"forget", "--json", "job:b"}).err == "");
  const Finished told = rlock_on(server, {"forget", "job:a"});
  CHECK(told.out == "job:a: forgot the history\n");
  CHECK(told.err == "");
}

SERVER_CASE("history: --history keeps more runs than the event log has, the failure among them")
{
  constexpr int successes = 150;  // two entries each; the log has 128 to 160
  REQUIRE(run_under(server, "k", {"--history", "30d"}, 3) == 3);
  for (int i = 0; i < successes; ++i) {
    REQUIRE(run_under(server, "k", {"--history", "30d"}, 0) == 0);
  }
  const auto runs = history_of(server);
  CHECK(runs.size() == successes + 1);
  CHECK(runs.back().at("exit_code") == 3);
  CHECK(runs.back().at("command") == "sh -c 'exit 3'");
  expect_end(rlock_on(server, {"history", "--failed", "k"}), 0, {err_is("")});
  CHECK(rlock_on(server, {"forget", "k"}).code == 0);
  CHECK(history_of(server).empty());
}

TEST_SUITE_END();

SERVER_CASE("history: --history of a lock for a process keeps more runs than the event log has")
{
  // Nobody asks for the end of the script until the keeper has seen it.
  const Process parent = script(
      server, R"(sh -c 'rlock acquire -S "$URL" -k k --pid $$ --history 30d >/dev/null; exit 3' & exec sleep 60)");
  wait_until([&] { return as_int(server.command({"EXISTS", "rlock:runs:{k}"})) == 1; }, "the keeper has kept it", 10s);
}

SERVER_CASE("history: --history of a lock that is released by its token keeps more runs than the event log has")
{
  Finished taken = rlock_on(server, {"acquire", "-k", "k", "--lease", "1m", "--history", "30d"});
  REQUIRE_MESSAGE(taken.code == 0, taken.err);
  taken.out.pop_back();
  CHECK(rlock_on(server, {"release", "-k", "k", "--token", taken.out, "--exit-code", "3"}).code == 0);
  CHECK(as_int(server.command({"EXISTS", "rlock:runs:{k}"})) == 1);
}
