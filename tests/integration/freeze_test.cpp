// SPDX-License-Identifier: Apache-2.0
// rlock freeze and rlock thaw: no job starts under a frozen lock, and everybody is told why.
#include "support/integration.h"
#include "support/json.h"
#include "support/paths.h"

#include <ctime>
#include <regex>

using namespace rlock::test;
namespace {

constexpr Exit is_busy = exited(75);

struct FreezeFixture {
  [[nodiscard]] Words freeze_words(const Words& more = {}) const
  {
    return joined({"freeze", "k", "--for", "1h", "--reason", "moving the database"}, more);
  }
  [[nodiscard]] Finished freeze(const Words& more = {}) const { return rlock_on(server, freeze_words(more)); }
  [[nodiscard]] Process start_freeze(const Words& more = {}) const { return start_on(server, freeze_words(more)); }
  [[nodiscard]] Process start_run(const Words& job, const Words& options = {}) const
  {
    return start_on(server, joined(joined({"run", "-k", "k"}, options), joined({"--"}, job)));
  }
  [[nodiscard]] Json state() const { return Json::parse(rlock_on(server, {"status", "k", "--json"}).out); }
  void await_line(std::size_t count) const
  {
    wait_until([&] { return state().at("waiting").size() == count; }, "so many wait");
  }
  void await_frozen() const
  {
    wait_until([&] { return !state().at("frozen").is_null(); }, "it is frozen");
  }
  // The names of the events of a lock, and of thawed who.
  [[nodiscard]] std::string events(const std::string& key = "k") const
  {
    std::string names;
    for (const std::string& line : lines_of(rlock_on(server, {"events", "-k", key, "--json"}).out)) {
      const Json event = Json::parse(line);
      const bool is_told = event.at("event") == "thawed" && event.at("by").is_string();
      names += (names.empty() ? "" : " ") + event.at("event").text() + (is_told ? " by somebody" : "");
    }
    return names;
  }

  RedisServer server;
};

struct FreezeInLine : FreezeFixture {
  FreezeInLine() { skip_on_quorum("several servers have no queue"); }
};

// "2026-11-28T21:00:00Z", so far from now.
std::string iso_time(std::chrono::seconds away)
{
  const std::time_t then = std::time(nullptr) + away.count();
  std::tm parts{};
  ::gmtime_r(&then, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

#define FROZEN_CASE(title) CASE_WITH(FreezeFixture, lock, title)
#define FREEZE_IN_LINE_CASE(title) CASE_WITH(FreezeInLine, lock, title)

TEST_SUITE_BEGIN("topology-quick");

FROZEN_CASE("freeze: no job starts before rlock thaw, whatever its options, and everybody is told why")
{
  expect_end(lock.freeze(), 0, {out_has("k is frozen by "), out_has(": moving the database\n")});

  for (const Words& options : std::vector<Words>{{"-n"}, {"-w", "600ms", "--latest"}, {"-w", "600ms", "-s"}}) {
    if (options.back() == "--latest" && is_quorum_topology()) {
      continue;  // it is about one queue
    }
    CAPTURE(options.back());
    Process run = lock.start_run({"echo", "ran"}, options);
    expect_end(run, is_busy, {out_is("")}, 30s);
    CHECK((options.back() == "-s" || has(run.err(), "frozen by ")));
  }
  expect_end(rlock_on(lock.server, {"force-unlock", "k", "--yes", "--now"}), 1,
             {err_has("(rlock thaw k -S "), err_has(" ends that)")});

  const Json state = lock.state();
  CHECK(state.at("held") == true);
  CHECK(state.at("ttl_ms") > 3'500'000);
  CHECK(state.at("frozen").at("reason") == "moving the database");
  CHECK(state.at("frozen").at("until") > state.at("frozen").at("since"));
  CHECK(state.at("holders").at(0).at("command").is_null());
  CHECK(rlock_on(lock.server, {"status", "k"}).out.starts_with("k: frozen by "));

  CHECK(rlock_on(lock.server, {"thaw", "k"}).code == 0);
  expect_end(rlock_on(lock.server, {"thaw", "k"}), 1, {err_has("k is not frozen")});
  CHECK(rlock_on(lock.server, {"thaw", "--all"}).err == "rlock: no lock is frozen\n");
  CHECK(rlock_on(lock.server, {"thaw", "--all", "--prefix", "d:"}).err ==
        "rlock: no lock that begins with d: is frozen\n");
  CHECK(rlock_on(lock.server, {"thaw", "d*"}).err == "rlock: no lock that matches d* is frozen\n");
  CHECK(lock.start_run({"true"}, {"-n"}).wait(30s) == success);
}

FROZEN_CASE("thaw: a lock that is named twice is thawed once")
{
  for (const Words& words : {Words{"k", "k"}, Words{"-k", "k", "k*"}, Words{"k*", "*"}}) {
    CAPTURE(words.back());
    CHECK(lock.freeze().code == 0);
    const Finished thawed = rlock_on(lock.server, joined({"thaw"}, words));
    CHECK(thawed.code == 0);
    CHECK(std::ranges::count(thawed.out, '\n') == 1);
    CHECK(thawed.err == "");
  }
}

FROZEN_CASE("thaw: a job keeps its lock, and a freeze that may not wait for it is busy")
{
  Process job = held_run(lock.server, {"-k", "k"});
  expect_end(rlock_on(lock.server, {"thaw", "k"}), 1, {err_has("k is not frozen, it is held by ")});
  CHECK(rlock_on(lock.server, {"thaw", "--all"}).code == 1);
  CHECK(job.running());
  CHECK(is_held(lock.server, "k"));
  CHECK(lock.freeze({"-n"}).code == 75);
  CHECK(lock.freeze({"-w", "300ms"}).code == 75);
  CHECK(lock.state().at("frozen").is_null());
}

FREEZE_IN_LINE_CASE("freeze: it waits first in line for the job that runs, and its time counts from then")
{
  Process job = held_run(lock.server, {"-k", "k"});
  Process waiter = lock.start_run({"echo", "ran"});
  lock.await_line(1);
  Process freeze = start_on(lock.server, {"freeze", "k", "--for", "1m", "--reason", "why"});
  lock.await_line(2);
  std::this_thread::sleep_for(1500ms);
  CHECK(freeze.out() == "");
  job.signal(SIGTERM);
  expect_end(freeze, success, {out_has("k is frozen by ")}, 30s);
  const Json state = lock.state();
  CHECK(state.at("frozen").at("reason") == "why");
  CHECK(state.at("ttl_ms") > 59'000);
  CHECK(state.at("waiting").size() == 1);
  CHECK(waiter.out() == "");
  CHECK(rlock_on(lock.server, {"thaw", "k", "--json"}).code == 0);
  expect_end(waiter, success, {out_is("ran\n")}, 30s);
}

FROZEN_CASE("freeze: one that is killed while it waits is passed over")
{
  Process job = held_run(lock.server, {"-k", "k"});
  Process freeze = lock.start_freeze();
  if (!is_quorum_topology()) {
    lock.await_line(1);
  }
  freeze.signal(SIGKILL);
  CHECK(freeze.wait(30s) == died_of(SIGKILL));
  job.signal(SIGTERM);
  job.wait(30s);
  Process next = lock.start_run({"echo", "ran"});
  CHECK(next.wait(60s) ==
        success);  // on etcd and ZooKeeper the presence of a waiter that was killed lasts 30 s at most
  CHECK(lock.state().at("frozen").is_null());
}

TEST_CASE("freeze: list --all shows it, and a reason of two lines is told alike everywhere")
{
  const FreezeFixture fixture;
  CHECK(rlock_on(fixture.server, {"freeze", "k", "--for", "1h", "--reason", "two\nlines"}).code == 0);
  Process refused = fixture.start_run({"true"}, {"-n"});
  CHECK(refused.wait(30s) == is_busy);
  CHECK(has(rlock_on(fixture.server, {"list", "--all"}).out, "frozen by "));
  for (const Words& words : {Words{"list", "--all"}, Words{"status", "k"}, Words{"history", "k"}}) {
    CAPTURE(words.front());
    CHECK(has(rlock_on(fixture.server, words).out, ": two\\nlines"));
  }
  const Finished events = rlock_on(fixture.server, {"events", "k"});
  const bool has_several_logs = events.code == 64;  // of a quorum
  CHECK((has_several_logs || has(events.out, ": two\\nlines")));
  CHECK(rlock_on(fixture.server, {"thaw", "k"}).code == 0);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("topology");

FROZEN_CASE("freeze: when its time is over, the waiters go on")
{
  CHECK(rlock_on(lock.server, {"freeze", "k", "--for", "3s", "--reason", "why"}).code == 0);
  Process waiter = lock.start_run({"echo", "ran"});
  expect_end(waiter, success, {out_is("ran\n")}, 30s);
}

FREEZE_IN_LINE_CASE("freeze: --until ends it at that time, however long it has waited for a job")
{
  Process job = held_run(lock.server, {"-k", "k"});
  Process freeze = start_on(lock.server, {"freeze", "k", "--until", iso_time(60s), "--reason", "why"});
  lock.await_line(1);
  std::this_thread::sleep_for(3s);
  job.signal(SIGTERM);
  CHECK(freeze.wait(30s) == success);
  const Json state = lock.state();
  CHECK(state.at("ttl_ms") <= 57'000);
  CHECK(state.at("ttl_ms") > 40'000);
  const Finished waits = rlock_on(lock.server, {"freeze", "k", "--until", iso_time(3s), "--reason", "why", "-w", "1h"});
  CHECK(waits.code == 75);
}

FROZEN_CASE("freeze: --until takes the next 22:00, and refuses what is no time to come")
{
  const auto freeze = [&](const std::string& time) {
    return rlock_on(lock.server, {"freeze", "k", "--until", time, "--reason", "why", "--utc", "-n"});
  };
  CHECK(has(freeze("tomorrow").err, "--until: 'tomorrow' is no time (try --until 22:00"));
  CHECK(has(freeze(iso_time(-10s)).err, "is over (name a time to come)"));
  CHECK(has(freeze("2199-01-01").err, "is too far away (30d at most)"));
  for (const std::string& time : {iso_time(-60s), iso_time(-60s).substr(0, 10)}) {
    CHECK(freeze(time).code == 64);
  }
  const Finished both = rlock_on(lock.server, {"freeze", "k", "--until", "22:00", "--for", "2h", "--reason", "why"});
  CHECK(both.code == 64);
  const Finished frozen = freeze(iso_time(-60s).substr(11, 5));
  CHECK_MESSAGE(frozen.code == 0, frozen.err);
  CHECK(lock.state().at("ttl_ms") > 86'000'000);
}

FREEZE_IN_LINE_CASE(
    "freeze: --cancel-in-progress does not break one, and a signal that ends one that waits leaves none in line")
{
  Process job = held_run(lock.server, {"-k", "k"});
  Process ended = lock.start_freeze();
  lock.await_line(1);
  ended.signal(SIGTERM);
  CHECK(ended.wait(30s) == died_of(SIGTERM));
  CHECK(lock.state().at("waiting").empty());
  job.signal(SIGTERM);
  CHECK(lock.freeze().code == 0);
  Process cancel = lock.start_run({"echo", "ran"}, {"--cancel-in-progress", "-w", "12s"});
  expect_end(cancel, is_busy, {out_is(""), err_has("; the run waits for its end\n")}, 60s);
  CHECK(lock.state().at("ttl_ms") > 3'000'000);
}

FREEZE_IN_LINE_CASE("freeze: a pattern takes the locks that the server knows, all first in line at once, and no others")
{
  Process first = held_run(lock.server, {"-k", "d:1"});
  Process second = held_run(lock.server, {"-k", "d:2"});
  Process other = held_run(lock.server, {"-k", "e:1"});
  CHECK(rlock_on(lock.server, {"run", "-k", "d:free", "--", "true"}).code == 0);
  CHECK(rlock_on(lock.server, {"run", "-k", "e:free", "--", "true"}).code == 0);
  Process freeze = start_on(lock.server, {"freeze", "d:*", "--for", "1h", "--reason", "why"});
  const auto waits = [&](const std::string& key) {
    return Json::parse(rlock_on(lock.server, {"status", key, "--json"}).out).at("waiting").size() == 1;
  };
  wait_until([&] { return waits("d:1") && waits("d:2"); }, "it is in both lines");
  CHECK(has(freeze.out(), "d:free is frozen by "));
  CHECK(has(freeze.err(), "takes the locks that the server knows, 3 of them now"));
  const auto code = [&](const std::string& key) {
    return rlock_on(lock.server, {"run", "-n", "-k", key, "--", "true"}).code;
  };
  CHECK(code("d:free") == 75);
  CHECK(code("d:new") == 0);
  CHECK(code("e:free") == 0);
  second.signal(SIGTERM);
  wait_until([&] { return has(freeze.out(), "d:2 is frozen by "); }, "the second is frozen before the first job ends");
  first.signal(SIGTERM);
  expect_end(freeze, success, {out_has("d:1 is frozen by ")}, 30s);
  const Finished json_lines = rlock_on(lock.server, {"thaw", "--all", "--json"});
  CHECK(json_lines.code == 0);
  CHECK(std::ranges::count(json_lines.out, '\n') == 3);
  CHECK(other.running());
  CHECK(code("d:1") == 0);
  CHECK(rlock_on(lock.server, {"freeze", "x:*", "--for", "1h", "--reason", "why"}).code == 1);
}

FREEZE_IN_LINE_CASE("freeze: with a signal, or when time is over, those that wait for several locks leave all lines")
{
  Process first = held_run(lock.server, {"-k", "d:1"});
  Process second = held_run(lock.server, {"-k", "d:2"});
  const auto in_line = [&](const std::string& key) {
    return Json::parse(rlock_on(lock.server, {"status", key, "--json"}).out).at("waiting").size();
  };
  const Words words{"freeze", "d:1", "d:2", "--for", "1h", "--reason", "why"};
  Process freeze = start_on(lock.server, words);
  wait_until([&] { return in_line("d:1") + in_line("d:2") == 2; }, "it is in both lines");
  freeze.signal(SIGINT);
  CHECK(freeze.wait(30s) == died_of(SIGINT));
  CHECK(in_line("d:1") + in_line("d:2") == 0);
  expect_end(rlock_on(lock.server, joined(words, {"-w", "500ms"})), 75,
             {err_has("d:1 is busy after 500ms, held by "), err_has("d:2 is busy after 500ms, held by ")});
  CHECK(rlock_on(lock.server, joined(words, {"-n"})).code == 75);
  CHECK(in_line("d:1") + in_line("d:2") == 0);
}

TEST_SUITE_END();

FROZEN_CASE("freeze: its events, its place in the history, and what it cannot freeze")
{
  CHECK(lock.freeze().code == 0);
  CHECK(lock.start_run({"true"}, {"-n"}).wait(30s) == is_busy);
  const Finished history = rlock_on(lock.server, {"history", "k"});
  CHECK(has(history.err, "k is frozen by "));
  CHECK(has(history.out, "freeze: moving the database)"));  // the run that was skipped says why
  CHECK(std::ranges::count(history.out, '\n') == 2);
  CHECK(rlock_on(lock.server, {"thaw", "k"}).code == 0);
  Process job = held_run(lock.server, {"-k", "k"});
  Process freeze = start_on(lock.server, {"freeze", "k", "--for", "1s", "--reason", "why"});
  lock.await_line(1);
  job.signal(SIGTERM);
  CHECK(freeze.wait(30s) == success);
  CHECK(lock.start_run({"true"}).wait(30s) == success);
  CHECK(lock.events() == "frozen skipped thawed by somebody acquired released frozen thawed acquired released");
  const Json runs = Json::parse(
      "[" + std::regex_replace(rlock_on(lock.server, {"history", "k", "--json"}).out, std::regex("\n(.)"), ",$1") +
      "]");
  CHECK(runs.size() == 3);  // two jobs and one that was skipped

  CHECK(rlock_on(lock.server, {"run", "-k", "p", "--permits", "2", "--", "true"}).code == 0);
  const std::vector<std::pair<Words, std::string>> wrong{
      {{"freeze", "k", "--for", "1h"}, "--reason is needed"},
      {{"freeze", "k", "--for", "1h", "--reason", ""}, "--reason: the text is empty"},
      {{"freeze", "k", "--reason", "why"}, "--for or --until is needed"},
      {{"freeze", "--for", "1h", "--reason", "why"}, "no key"},
      {{"freeze", "p", "--for", "1h", "--reason", "why"}, "permits cannot be frozen"},
      {{"thaw"}, "no key"},
      {{"thaw", "--all", "k"}, "--all thaws every lock"},
  };
  for (const auto& row : wrong) {
    expect_end(rlock_on(lock.server, row.first), 64, {err_has(row.second)});
  }
}

FROZEN_CASE("freeze: every kind of lock, a job's own lock, and who froze it behind sudo")
{
  for (const Words& options : std::vector<Words>{{}, {"-s"}, {"-x"}, {"--format", "string"}}) {
    CAPTURE((options.empty() ? "plain" : options.back()));
    Process job = held_run(lock.server, joined({"-k", "k"}, options));
    Process freeze =
        start_on(lock.server, {"freeze", "k", "--for", "1h", "--reason", "why"}, {.env = {{"SUDO_USER", "ann"}}});
    lock.await_line(1);
    Process waiter = lock.start_run({"echo", "ran"}, options);
    lock.await_line(2);
    job.signal(SIGTERM);
    CHECK(freeze.wait(30s) == success);
    CHECK(lock.state().at("frozen").at("by").text().starts_with("ann as "));
    CHECK(waiter.out() == "");
    CHECK(rlock_on(lock.server, {"thaw", "k"}).code == 0);
    CHECK(waiter.wait(30s) == success);
  }
  const std::string freeze_inside = std::string(RLOCK_BINARY) + " freeze k --for 1h --reason why -w 1s";
  const Finished inside = rlock_on(lock.server, {"run", "-k", "k", "--", "sh", "-c", freeze_inside});
  CHECK(inside.code == 75);
  CHECK_FALSE(is_held(lock.server, "k"));
}
