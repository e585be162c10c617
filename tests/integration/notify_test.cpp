// SPDX-License-Identifier: Apache-2.0
// --notify: what a command of the user learns of a run.
#include "support/flock_fixture.h"
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/script.h"

#include <csignal>
#include <regex>

using namespace rlock::test;

namespace {

// A server, and a file to which --notify writes.
struct NotifyFixture {
  // `options` are those of the verb, before the command.
  Words words(const std::string& verb, Words options, const Words& command = {"true"}, std::string notify = "") const
  {
    const Words all{verb, "-S", server.url(), "--notify", notify.empty() ? tell : notify};
    return joined(joined(all, options), command);
  }
  Words run(Words options, const Words& command = {"true"}, const std::string& notify = "") const
  {
    options.insert(options.begin(), {"-k", "k"});
    options.emplace_back("--");
    return words("run", std::move(options), command, notify);
  }
  // The lines so far.
  [[nodiscard]] std::string told() const { return text_of(file); }
  // The line of the only run.
  [[nodiscard]] std::string await() const
  {
    wait_until([&] { return told().find('\n') != std::string::npos; }, "it is told", 30s);
    return told();
  }
  [[nodiscard]] bool is_free() const { return as_int(server.command({"EXISTS", "k"})) == 0; }
  void await_hold() const
  {
    wait_until([&] { return !is_free(); }, "it is held", 30s);
  }

  const RedisServer server;
  const std::filesystem::path file = make_temp_dir("notify") / "told";
  // In one write, so that a reader sees a whole line.
  const std::string tell =
      R"(printf '%s %s %s [%s]\n' "$RLOCK_KEY" "$RLOCK_OUTCOME" "$RLOCK_EXIT_CODE" "$RLOCK_MESSAGE" >>)" +
      file.string();
};

bool matches(const std::string& text, const std::string& pattern)
{
  return std::regex_match(text, std::regex(pattern));
}

}  // namespace

#define NOTIFY_CASE(title) CASE_WITH(NotifyFixture, fixture, title)

TEST_SUITE_BEGIN("topology-quick");

NOTIFY_CASE("notify: once when a run is over, and its exit code stays")
{
  CHECK(run_rlock(fixture.run({})).code == 0);
  CHECK_MESSAGE(matches(fixture.told(), R"(k succeeded 0 \[k: succeeded after .*\]\n)"), fixture.told());
  std::filesystem::remove(fixture.file);
  const Finished failed = run_rlock(fixture.run({}, {"sh", "-c", "exit 3"}));
  CHECK(failed.code == 3);
  CHECK(failed.err == "");
  CHECK_MESSAGE(matches(fixture.told(), R"(k failed 3 \[k: failed with exit code 3 after .*\]\n)"), fixture.told());
}

NOTIFY_CASE("notify: a run that never began")
{
  CHECK(run_rlock(fixture.run({}, {"./no-such-job"})).code == 127);
  CHECK(fixture.told() == "k failed 127 [cannot execute ./no-such-job: no such file]\n");
  std::filesystem::remove(fixture.file);

  Process holder = start_on(fixture.server, {"run", "-k", "k", "--", "sleep", "60"});
  fixture.await_hold();
  CHECK(run_rlock(fixture.run({"-n"})).code == 75);
  CHECK_MESSAGE(matches(fixture.told(), R"(k busy 75 \[k is busy, held by .*\]\n)"), fixture.told());
  std::filesystem::remove(fixture.file);
  CHECK(run_rlock(fixture.run({"-w", "50ms", "-E", "9"})).code == 9);
  CHECK(fixture.told().starts_with("k busy 9 [k is busy after "));
}

TEST_SUITE_END();

NOTIFY_CASE("notify: no server")
{
  const std::string nowhere = "unix://" + (fixture.file.parent_path() / "no-socket").string();
  CHECK(run_rlock({"run", "-S", nowhere, "-k", "k", "--notify", fixture.tell, "--", "true"}).code == 69);
  CHECK_MESSAGE(fixture.told().starts_with("k unreachable 69 [cannot reach unix://"), fixture.told());
}

NOTIFY_CASE("notify: it runs after the release, with the variables of the job")
{
  const std::string shown = R"(env | grep ^RLOCK_ | sort >)" + fixture.file.string() + "; " + rlock_program().string() +
                            " run -k k -n -- true || echo still held >>" + fixture.file.string();
  const std::string of_job = (fixture.file.parent_path() / "job").string();
  CHECK(run_rlock(fixture.run({"--label", "x"}, {"sh", "-c", "env | grep ^RLOCK_ | sort >" + of_job}, shown)).code ==
        0);
  const std::string job = text_of(of_job);
  const std::string told = fixture.told();
  for (const std::string name : {"KEY", "FENCE", "LEASE_MS", "SERVER", "TOKEN"}) {
    CAPTURE(name);
    const std::size_t at = job.find("RLOCK_" + name + "=");
    REQUIRE(at != std::string::npos);
    CHECK(has(told, job.substr(at, job.find('\n', at) - at + 1)));
  }
  CHECK_FALSE(has(told, "RLOCK_HELD"));
  CHECK_FALSE(has(told, "still held"));
  CHECK(std::regex_search(told, std::regex("RLOCK_DURATION_MS=[0-9]+\n")));
}

NOTIFY_CASE("notify: stopped, forced and lost")
{
  CHECK(run_rlock(fixture.run({"--max-runtime", "50ms"}, {"sleep", "60"})).code == 124);
  CHECK(fixture.told() == "k timed_out 124 [the job of k was stopped: its --max-runtime of 50ms was over]\n");
  std::filesystem::remove(fixture.file);

  Process forced = start_rlock(fixture.run({}, {"sleep", "60"}));
  fixture.await_hold();
  CHECK(rlock_on(fixture.server, {"force-unlock", "k", "--yes"}).code == 0);
  CHECK(forced.wait(30s) == Exit{121});
  CHECK_MESSAGE(fixture.told().starts_with("k forced 121 [the lock k was force-unlocked by "), fixture.told());
  std::filesystem::remove(fixture.file);

  Process lost = start_rlock(fixture.run({"--ttl", "3s"}, {"sleep", "60"}));
  fixture.await_hold();
  fixture.server.command({"DEL", "k"});
  CHECK(lost.wait(30s) == Exit{121});
  CHECK_MESSAGE(fixture.told().starts_with("k lost 121 [the lock k was lost: "), fixture.told());
}

NOTIFY_CASE("notify: a keeper whose lock is taken by an operator tells forced, as a run does")
{
  Process watched({"sleep", "60"});
  (void)succeeded(rlock_on(fixture.server,
                           {"acquire", "-k", "k", "--pid", std::to_string(watched.pid()), "--notify", fixture.tell}));
  CHECK(rlock_on(fixture.server, {"force-unlock", "k", "--yes", "--now"}).code == 0);
  CHECK(fixture.await().starts_with("k forced "));
}

NOTIFY_CASE("notify: the guardian of a killed rlock tells that the run is lost, with its fencing number")
{
  const std::string of_job = (fixture.file.parent_path() / "job").string();
  Process killed = start_rlock(fixture.run({}, {"sh", "-c", "echo $RLOCK_FENCE >" + of_job + "; exec sleep 60"},
                                           "echo $RLOCK_FENCE >" + of_job + ".told; " + fixture.tell));
  wait_until([&] { return text_of(of_job).ends_with("\n"); }, "the job runs", 30s);
  killed.signal(SIGKILL);
  CHECK(fixture.await() == "k lost 137 [rlock was killed: its job was stopped and its lock released]\n");
  CHECK(fixture.is_free());
  CHECK(text_of(of_job + ".told") == text_of(of_job));
}

NOTIFY_CASE("notify: a command that fails is one line, and changes no exit code")
{
  expect_end(run_rlock(fixture.run({}, {"sh", "-c", "exit 3"}, "exit 4")), 3,
             {err_is("rlock: --notify: the command ended with exit code 4\n")});
  const Finished odd = run_rlock(fixture.run({}, {"true"}, "cat; echo out"));  // no input; its output is for people
  expect_end(odd, 0, {out_is(""), err_is("out\n")});
  CHECK(run_rlock(fixture.run({}, {"true"}, "")).code == 0);
  CHECK(rlock_on(fixture.server, {"run", "-k", "k", "--notify", "", "--", "true"}).code == 64);
}

NOTIFY_CASE("notify: a signal meanwhile goes to the command, and the exit code of the job stays")
{
  const std::string begun = (fixture.file.parent_path() / "begun").string();
  Process rlock = start_rlock(fixture.run({}, {"sh", "-c", "exit 3"}, "echo begun >" + begun + "; sleep 60"));
  wait_until([&] { return !text_of(begun).empty(); }, "the command runs", 30s);
  rlock.signal(SIGTERM);
  expect_end(rlock, Exit{3}, {err_is("rlock: --notify: the command was killed by signal TERM\n")}, 20s);
}

NOTIFY_CASE("notify: a run that shares the success of another, or ends while it waits, is none to tell about")
{
  for (int i = 0; i < 2; ++i) {
    CHECK(run_rlock(fixture.words("once", {"-k", "o", "--for", "1h", "--"})).code == 0);
  }
  CHECK_MESSAGE(matches(fixture.told(), R"(o succeeded 0 \[.*\]\n)"), fixture.told());
  std::filesystem::remove(fixture.file);
  Process holder = start_on(fixture.server, {"run", "-k", "k", "--", "sleep", "60"});
  fixture.await_hold();
  Process waiter = start_rlock(fixture.run({}));
  wait_until([&] { return as_int(fixture.server.command({"EXISTS", "rlock:queue:{k}"})) == 1; }, "it waits", 30s);
  waiter.signal(SIGTERM);
  CHECK(waiter.wait(30s) == died_of(SIGTERM));
  CHECK(fixture.told() == "");
}

NOTIFY_CASE("notify: flock tells once, by its keeper where it leaves one")
{
  CHECK(run_rlock(fixture.words("flock", {"k"}, {"sh", "-c", "exit 2"})).code == 2);
  CHECK_MESSAGE(matches(fixture.told(), R"(k failed 2 \[.*\]\n)"), fixture.told());
  std::filesystem::remove(fixture.file);
  // The keeper waits for what holds the pipe, and the command of --notify does not have it.
  CHECK(run_rlock(fixture.words("flock", {"k"}, {"sh", "-c", "sleep 1 & exit 2"})).code == 2);
  CHECK(fixture.told() == "");
  CHECK_MESSAGE(matches(fixture.await(), R"(k failed 2 \[.*\]\n)"), fixture.told());
  CHECK(fixture.is_free());
}

NOTIFY_CASE("notify: a keeper tells that its process has ended, or that the lock was lost")
{
  const std::string acquire = "trap '' TERM; rlock acquire -S \"$URL\" -k k --pid $$ --ttl 3s --notify '" +
                              std::regex_replace(fixture.tell, std::regex("'"), R"('\'')") + "' >/dev/null || exit; ";
  Process ended = script(fixture.server, acquire);
  CHECK(ended.wait(30s) == Exit{0});
  CHECK_MESSAGE(matches(fixture.await(), R"(k succeeded 0? \[k: succeeded after .*\]\n)"), fixture.told());
  std::filesystem::remove(fixture.file);
  Process loser = script(fixture.server, acquire + "while :; do sleep 0.1; done");
  fixture.await_hold();
  fixture.server.command({"DEL", "k"});
  CHECK_MESSAGE(fixture.await().starts_with("k lost  [the lock k was lost: "), fixture.told());
  CHECK(rlock_on(fixture.server, {"acquire", "-k", "k", "--lease", "3s", "--notify", "true"}).code == 64);
}

namespace {

// What `notify` prints of one variable.
std::string printing(const NotifyFixture& fixture, const std::string& variables)
{
  return "echo \"" + variables + "\" >>" + fixture.file.string();
}

}  // namespace

NOTIFY_CASE("notify: what ran, where, since when, and for the how many-th time")
{
  const std::string tell = printing(fixture, "$RLOCK_LABEL|$RLOCK_COMMAND|$RLOCK_ATTEMPT|$RLOCK_HOLDER|$RLOCK_HOST");
  CHECK(run_rlock(fixture.run({"--label", "night"}, {"true", "--password", "hidden"}, tell)).code == 0);
  const std::string told = fixture.told();
  CHECK_MESSAGE(told.starts_with("night|true --password "), told);
  CHECK_FALSE(has(told, "hidden"));
  CHECK_MESSAGE(std::regex_search(told, std::regex(R"(\|1\|\|.+\n)")), told);
  std::filesystem::remove(fixture.file);
  CHECK(run_rlock(fixture.run({}, {"true"}, printing(fixture, "$RLOCK_STARTED"))).code == 0);
  CHECK_MESSAGE(matches(fixture.told(), R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ\n)"), fixture.told());
}

NOTIFY_CASE("notify: who has the lock that was busy")
{
  Process holder = start_on(fixture.server, {"run", "-k", "k", "--label", "first", "--", "sleep", "60"});
  fixture.await_hold();
  CHECK(run_rlock(fixture.run({"-n"}, {"true"}, printing(fixture, "$RLOCK_HOLDER"))).code == 75);
  CHECK_MESSAGE(matches(fixture.told(), R"(.*@.* \(pid \d+\), running sleep 60 \[first\]\n)"), fixture.told());
}

NOTIFY_CASE("notify: a job that ended after a signal from outside was cancelled, unless it succeeded")
{
  struct Row {
    int signal;
    const char* job;
    const char* outcome;
  };
  const Row rows[] = {
      {SIGTERM, "touch $0; while :; do sleep 0.01; done", "k cancelled 143 "},
      {SIGINT, "trap 'exit 3' INT; touch $0; while :; do sleep 0.01; done", "k cancelled 3 "},
      {SIGHUP, "trap 'exit 0' HUP; touch $0; while :; do sleep 0.01; done", "k succeeded 0 "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.outcome);
    const auto runs = fixture.file.parent_path() / "runs";
    Process one = start_rlock(fixture.run({}, {"sh", "-c", row.job, runs.string()}));
    wait_until([&] { return std::filesystem::exists(runs); }, "it runs", 30s);
    one.signal(row.signal);
    one.wait(30s);
    CHECK_MESSAGE(fixture.told().starts_with(row.outcome), fixture.told());
    std::filesystem::remove(fixture.file);
    std::filesystem::remove(runs);
  }
  CHECK(outcomes(history_of(fixture.server)) == "succeeded 0, cancelled 3, cancelled 143");
}

NOTIFY_CASE("notify: a keeper tells of a lock that was gone when its script ended, before it was asked for again")
{
  Process loser = script(fixture.server, "trap '' TERM; rlock acquire -S \"$URL\" -k k --pid $$ --notify '" +
                                             std::regex_replace(fixture.tell, std::regex("'"), R"('\'')") +
                                             "' >/dev/null || exit; redis-cli -s " +
                                             fixture.server.socket_path().string() + " FLUSHALL");
  CHECK(loser.wait(30s) == Exit{0});
  CHECK_MESSAGE(fixture.await().starts_with("k lost "), fixture.told());
}
