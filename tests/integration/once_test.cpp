// SPDX-License-Identifier: Apache-2.0
// rlock once: one caller runs the command, the others wait and share its result.

#include <iterator>
#include <regex>
#include "support/crowd.h"
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/script.h"

using namespace rlock::test;

namespace {

constexpr const char* queue = "rlock:queue:{k}";

// Callers of one job, which writes a line in each run.
struct Callers {
  RedisServer server;
  std::filesystem::path dir = make_temp_dir("once");

  [[nodiscard]] std::string log() const { return (dir / "runs").string(); }
  // `text` is a shell script; $0 is the file of runs.
  Process call(const std::string& within, const std::string& text, std::vector<std::string> options = {}) const
  {
    const Words job{"sh", "-c", "echo run >> $0; " + text, log()};
    return start_rlock(joined({"once", "-q", "-S", server.url(), "-k", "k", "--for", within}, with_job(options, job)));
  }
  [[nodiscard]] std::int64_t runs() const
  {
    std::ifstream file(log());
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }
  [[nodiscard]] std::int64_t in_line() const { return as_int(server.command({"ZCARD", queue})); }
  // `count` callers behind one whose job waits for the file `go`
  std::vector<Process> crowd(int count, const std::string& within, const std::string& text) const
  {
    std::vector<Process> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(call(within, text));
    }
    wait_until([&] { return runs() == 1 && in_line() == count - 1; }, "one runs, the others wait", 60s);
    return all;
  }
  void go() const { std::ofstream(dir / "go"); }
  [[nodiscard]] std::string gate() const
  {
    return "until test -e " + (dir / "go").string() + "; do sleep 0.01; done; ";
  }
};

struct CallersInLine : Callers {
  CallersInLine() { skip_on_quorum("a quorum has no queue"); }
};

}  // namespace

#define CALLERS_CASE(title) CASE_WITH(Callers, callers, title)
#define CALLERS_IN_LINE_CASE(title) CASE_WITH(CallersInLine, callers, title)

TEST_SUITE_BEGIN("topology");

CALLERS_IN_LINE_CASE("once: 100 at a time: one run, and all of them succeed")
{
  auto all = callers.crowd(crowd_of(100), "1h", callers.gate());
  callers.go();
  for (Process& one : all) {
    expect_end(one, Exit{0}, {err_is("")}, 60s);
  }
  CHECK(callers.runs() == 1);
  CHECK(callers.in_line() == 0);
  CHECK_FALSE(is_held(callers.server));
}

CALLERS_IN_LINE_CASE("once: callers that waited share a failure, and the next caller runs" *
                     doctest::test_suite("topology-quick"))
{
  auto all = callers.crowd(20, "1h", callers.gate() + "test $(wc -l < $0) -gt 1");
  callers.go();
  for (Process& one : all) {
    expect_end(one, Exit{1}, {err_is("")}, 60s);
  }
  CHECK(callers.runs() == 1);
  CHECK(callers.call("1h", "test $(wc -l < $0) -gt 1").wait() == Exit{0});
  CHECK(callers.runs() == 2);
}

CALLERS_IN_LINE_CASE("once: who shares a failure ends with the code of the job, and one line names the host")
{
  const std::string told = (callers.dir / "told").string();
  const Words words{"once",
                    "-S",
                    callers.server.url(),
                    "-k",
                    "k",
                    "--for",
                    "1h",
                    "--notify",
                    "echo $RLOCK_OUTCOME $RLOCK_EXIT_CODE >>" + told,
                    "--",
                    "sh",
                    "-c",
                    "echo run >> $0; " + callers.gate() + "kill -KILL $$",
                    callers.log()};
  Process first = start_rlock(words);
  wait_until([&] { return callers.runs() == 1; }, "it runs");
  Process second = start_rlock(words);
  Process again = start_rlock(joined({"once", "--again"}, Words(words.begin() + 1, words.end())));
  wait_until([&] { return callers.in_line() == 2; }, "two wait");
  callers.go();
  CHECK(first.wait(30s) == died_of(SIGKILL));
  CHECK(second.wait(30s) == exited(137));
  CHECK_MESSAGE(std::regex_search(second.err(), std::regex(R"(rlock: k failed on \S+ \(exit code 137\): this call )"
                                                           R"(shares that result\n$)")),
                second.err());  // a slow server lets it say before that it waits
  CHECK(again.wait(30s) == died_of(SIGKILL));
  CHECK(callers.runs() == 2);
  CHECK(text_of(told) == "failed 137\nfailed 137\n");
}

CALLERS_CASE("once: as many attempts as asked for, and --notify tells of the last one" *
             doctest::test_suite("topology-quick"))
{
  const std::string told = (callers.dir / "told").string();
  const Words options{"--attempts", "3",        "--retry-delay",
                      "100ms",      "--notify", "echo $RLOCK_OUTCOME $RLOCK_ATTEMPT >>" + told};
  SUBCASE("one caller")
  {
    CHECK(callers.call("1h", "test $(wc -l < $0) -gt 1", options).wait(30s) == Exit{0});
    CHECK(callers.runs() == 2);
    CHECK(text_of(told) == "succeeded 2\n");
    CHECK(outcomes(history_of(callers.server)) == "succeeded 0, failed 1");
  }
  SUBCASE("all fail")
  {
    CHECK(callers.call("1h", "exit 4", options).wait(30s) == Exit{4});
    CHECK(callers.runs() == 3);
    CHECK(text_of(told) == "failed 3\n");
  }
  SUBCASE("a caller that does not wait tries again as well")
  {
    CHECK(callers.call("1h", "test $(wc -l < $0) -gt 1", joined(options, {"-n"})).wait(30s) == Exit{0});
    CHECK(callers.runs() == 2);
  }
}

CALLERS_IN_LINE_CASE("once: the attempts are shared by those who wait, and so is their result")
{
  const std::string told = (callers.dir / "told").string();
  const Words options{"--attempts", "2",        "--retry-delay",
                      "50ms",       "--notify", "echo $RLOCK_OUTCOME $RLOCK_ATTEMPT >>" + told};
  std::string job = callers.gate();
  int expected = 0;
  SUBCASE("the second succeeds") { job += "test $(wc -l < $0) -gt 1"; }
  SUBCASE("both fail")
  {
    job += "exit 5";
    expected = 5;
  }
  std::vector<Process> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(callers.call("1h", job, options));
  }
  wait_until([&] { return callers.runs() == 1 && callers.in_line() == 3; }, "one runs, the others wait", 60s);
  callers.go();
  expect_ends(all, 60s, exited(expected));
  CHECK(callers.runs() == 2);
  CHECK(text_of(told) == (expected == 0 ? "succeeded 2\n" : "failed 2\n"));
}

CALLERS_CASE("once: --min-hold delays no attempt, and who comes while it keeps the lock shares the failure" *
             doctest::test_suite("topology-quick"))
{
  const std::string times = (callers.dir / "times").string();
  const Words options{"--attempts", "2", "--retry-delay", "50ms", "--min-hold", "6s"};
  const std::string job = "date +%s%3N >>" + times + "; exit 5";
  CHECK(callers.call("1h", job, options).wait(60s) == exited(5));
  CHECK(callers.runs() == 2);
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::ifstream(times) >> first >> second;
  CHECK(second - first < 5000);

  const Finished status = rlock_on(callers.server, {"status", "-k", "k"});
  expect_has(status.out, {"held, its job is over", "  ran      sh -c", "  to end   rlock force-unlock -k k",
                          ", then free: --min-hold, or the pause before the next attempt"});
  CHECK(has(rlock_on(callers.server, {"list"}).out, "kept after sh -c"));
  CHECK(has(rlock_on(callers.server, {"status", "-k", "k", "--json"}).out, "\"job_over\":true"));
  CHECK(has(rlock_on(callers.server, {"run", "-k", "k", "-n", "true"}).err, "kept after sh -c"));

  CHECK(callers.call("1h", job, options).wait(60s) == exited(5));
  CHECK(callers.runs() == 2);
}

CALLERS_CASE("once: one success in each period of the calendar" * doctest::test_suite("topology-quick"))
{
  const auto call = [&](const std::string& period, Words options = {}) {
    const Words job{"sh", "-c", "echo run >> $0", callers.log()};
    const Words words{"once", "-q", "-S", callers.server.url(), "-k", "k", "--per", period};
    return run_rlock(joined(words, with_job(options, job))).code;
  };
  CHECK(call("week") == 0);
  CHECK(call("week") == 0);
  CHECK(callers.runs() == 1);
  CHECK(call("week", {"--again"}) == 0);
  CHECK(callers.runs() == 2);
  wait_until([&] { return call("1s") == 0 && callers.runs() == 3; }, "the next second has none yet");
  const Finished wrong = rlock_on(callers.server, {"once", "-k", "k", "--per", "7h", "--", "true"});
  CHECK(wrong.code == 64);
  CHECK(wrong.err ==
        "rlock: --per: '7h' is neither hour, day or week nor a part of a day such as 6h or 15m (try --per day)\n");
  CHECK(call("1w") == 64);
}

CALLERS_CASE("once: -v says until when a success of --per counts")
{
  ProcessOptions in_zone;
  in_zone.env["TZ"] = "XYZ-1:30";
  const Words words{"once", "-v", "-S", callers.server.url(), "-k", "k", "--per", "week", "--", "true"};
  CHECK(run_rlock(words, in_zone).code == 0);
  const Finished again = run_rlock(words, in_zone);
  CHECK_MESSAGE(
      std::regex_search(again.err, std::regex(R"(rlock: k has succeeded at .* ago\), by .*: nothing to do until )"
                                              R"(\d{4}-\d\d-\d\d 00:00:00 \+01:30\n)")),
      again.err);
}

CALLERS_CASE("once: a run counts for the period in which it began")
{
  const auto call = [&](const std::string& job) {
    return rlock_on(callers.server,
                    {"once", "-k", "k", "--per", "1s", "--", "sh", "-c", "echo run >> $0; " + job, callers.log()})
        .code;
  };
  CHECK(call("sleep 1.1") == 0);
  CHECK(call("true") == 0);
  CHECK(callers.runs() == 2);
}

CALLERS_CASE("once: a success counts for as long as the caller says, and not longer")
{
  REQUIRE(callers.call("1h", "true").wait() == Exit{0});
  CHECK(callers.call("1h", "true").wait() == Exit{0});
  CHECK(callers.runs() == 1);
  wait_until([&] { return callers.call("1ms", "true").wait() == Exit{0} && callers.runs() == 2; }, "it runs again");
}

CALLERS_IN_LINE_CASE("once: a waiter shares the success, however short it is remembered")
{
  auto all = callers.crowd(10, "1ms", callers.gate());
  callers.go();
  expect_ends(all, 60s);
  CHECK(callers.runs() == 1);
}

CALLERS_CASE("once: a run that is killed, or loses its lock, is not remembered" * doctest::test_suite("topology-quick"))
{
  SUBCASE("killed")
  {
    Process first = callers.call("1h", "sleep 100", {"--ttl", "1s"});
    wait_until([&] { return callers.runs() == 1; }, "it runs");
    first.signal(SIGKILL);
  }
  SUBCASE("lost")
  {
    Process first = callers.call("1h", callers.gate(), {"--ttl", "1s"});
    wait_until([&] { return callers.runs() == 1; }, "it runs");
    callers.server.command({"DEL", "k"});
    CHECK(first.wait() == Exit{121});
  }
  CHECK(callers.call("1h", "true").wait() == Exit{0});
  CHECK(callers.runs() == 2);
}

CALLERS_CASE("once: a success that the server did not get at once is sent again while the lock is held")
{
  Process first = callers.call("1h", callers.gate(), {"--ttl", "20s", "--server-timeout", "500ms"});
  wait_until([&] { return callers.runs() == 1; }, "it runs");
  callers.server.stop_signal();
  callers.go();
  const auto since = std::chrono::steady_clock::now();
  wait_until([&] { return std::chrono::steady_clock::now() > since + 2s; },
             "any other lock would have been left to its ttl");
  callers.server.cont();
  CHECK(first.wait(30s) == Exit{0});
  CHECK(callers.call("1h", "true").wait() == Exit{0});
  CHECK(callers.runs() == 1);
}

CALLERS_IN_LINE_CASE("once: a caller that only wants the lock gets it in turn")
{
  auto all = callers.crowd(5, "1h", callers.gate());
  Process other = start_on(callers.server, {"run", "-k", "k", "--", "sh", "-c", "echo other >> " + callers.log()});
  wait_until([&] { return callers.in_line() == 5; }, "it waits behind them");
  callers.go();
  CHECK(other.wait() == Exit{0});
  CHECK(callers.runs() == 2);
  expect_ends(all);
}

CALLERS_CASE("once: --for is needed, and -n is busy")
{
  const Finished without = rlock_on(callers.server, {"once", "-k", "k", "--", "true"});
  CHECK(without.code == 64);
  CHECK(without.err ==
        "rlock: --per or --for is missing: they say how long a success counts (try --per day, or --for 1h)\n");
  Process first = callers.call("1h", callers.gate());
  wait_until([&] { return callers.runs() == 1; }, "it runs");
  CHECK(callers.call("1h", "true", {"-n"}).wait() == Exit{75});
  callers.go();
  CHECK(first.wait() == Exit{0});
}

CALLERS_CASE("once: a call that finds the job done is silent, and with -v says who did it and when")
{
  const auto once = [&](const Words& options) {
    return rlock_on(callers.server, joined({"once", "-k", "k", "--for", "1h"}, with_job(options, {"true"})));
  };
  REQUIRE(callers.call("1h", "true").wait().code == 0);
  REQUIRE(rlock_on(callers.server, {"run", "-k", "k", "--", "true"}).code == 0);  // it is not what once remembers
  const std::string pid = std::to_string(history_of(callers.server).back().at("pid").number());
  CHECK(once({}).err == "");
  const std::string said = once({"-v"}).err;
  const std::string line = "\nrlock: k has succeeded at 20[-0-9]+ [:0-9]+ \\S+ \\(\\S+ ago\\), by \\S+ \\(pid " + pid +
                           "\\): nothing to do\n";
  CHECK_MESSAGE(std::regex_search(said, std::regex(line)), said);
}

CALLERS_CASE("once: status shows the success and its age, --again runs it anyway, forget drops it")
{
  const auto verb = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 1, {"-S", callers.server.url()});
    return run_rlock(std::move(words));
  };
  CHECK(verb({"forget", "k"}).code == 1);
  CHECK(has(verb({"status", "--json", "k"}).out, "\"once\":null"));

  CHECK(callers.call("1h", "true").wait().code == 0);
  CHECK(callers.call("1h", "true").wait().code == 0);
  CHECK(callers.runs() == 1);
  expect_end(verb({"status", "k"}), 1, {out_has("succeeded 20"), out_has(" ago)")});
  // The server reads its clock once for the success and once for the ttl, and may stand still between the two.
  CHECK(std::regex_search(verb({"status", "--json", "k"}).out, std::regex(R"("for_ms":3600\d{3}\})")));

  CHECK(callers.call("1h", "true", {"--again"}).wait().code == 0);
  CHECK(callers.runs() == 2);
  CHECK(callers.call("1h", "exit 3", {"--again"}).wait().code == 3);
  CHECK(callers.call("1h", "true").wait().code == 0);  // the success before the failure is still remembered
  CHECK(callers.runs() == 3);

  expect_end(verb({"forget", "--json", "k"}), 0,
             {out_is("{\"key\":\"k\",\"forgotten\":true,\"history\":true,\"permits\":false}\n")});
  CHECK(verb({"forget", "k"}).code == 1);
  CHECK(callers.call("1h", "true").wait().code == 0);
  CHECK(callers.runs() == 4);
}

TEST_SUITE_END();
