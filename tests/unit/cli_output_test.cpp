// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "cli/output/json.h"
#include "cli/output/show.h"
#include "cli/verbs/force_unlock.h"
#include "support/shown_zone.h"

#include <doctest/doctest.h>

using namespace rlock;
using namespace rlock::cli;

namespace {

constexpr std::int64_t noon = 1'795'262'400'123;  // 2026-11-21T12:00:00.123Z

LockName name(const char* text) { return *LockName::parse(text); }

Holder rlock_holder()
{
  return {Owner::of("8743c9c0:1"), 1,
          HolderInfo{.host = "web1",
                     .pid = 71,
                     .user = "alice",
                     .command = "./job.sh",
                     .label = "",
                     .since_ms = noon,
                     .lease = Millis{30'000},
                     .automatic = true}};
}

LockState held() { return {name("stock"), Plain{}, Millis{28'400}, 1'732'190'400'123'456, {rlock_holder()}, {}}; }
LockState foreign() { return {name("java"), Plain{}, std::nullopt, 0, {{Owner::of("uuid:1"), 2, {}}}, {}}; }
LockState vacant() { return {name("free"), Plain{}, std::nullopt, 0, {}, {}}; }

Waiter bob(const char* label)
{
  return {
      Owner::of("b0b:1"),
      HolderInfo{
          .host = "web2", .pid = 72, .user = "bob", .command = "./night.sh", .label = label, .since_ms = noon + 1000}};
}
Waiter nameless() { return {Owner::of("uuid:2"), {}}; }

constexpr const char* ours_json =
    R"({"token":"8743c9c0:1","owner":"8743c9c0:1","count":1,"host":"web1","pid":71,"user":"alice","sudo_user":null,"command":"./job.sh",)"
    R"("label":null,"since":"2026-11-21T12:00:00.123Z","lease_ms":30000,"auto":true,"revoked":false,"job_over":false,"freeze":null})";

}  // namespace

TEST_CASE("time: in UTC, to the millisecond, and nothing for what is no time")
{
  CHECK(iso_utc(noon) == "2026-11-21T12:00:00.123Z");
  CHECK(iso_utc(1) == "1970-01-01T00:00:00.001Z");
  CHECK(iso_utc(253'402'300'799'999) == "9999-12-31T23:59:59.999Z");
  CHECK_FALSE(iso_utc(253'402'300'800'000));
  CHECK_FALSE(iso_utc(0));
  CHECK_FALSE(iso_utc(-1));
  const test::InUtc in_utc;
  CHECK(since_and_age(noon, noon + 303'000) == "2026-11-21 12:00:00 UTC (5m 3s ago)");
  CHECK(since_and_age(noon, noon - 1) == "2026-11-21 12:00:00 UTC");
  CHECK(since_and_age(0, noon).empty());
}

TEST_CASE("time: for people it is that of their zone, with the distance from UTC")
{
  {
    const test::InZone ahead("XYZ-1:30");
    CHECK(shown_time(noon) == "2026-11-21 13:30:00 +01:30");
    CHECK_FALSE(shown_time(0));
    const test::InUtc in_utc;
    CHECK(shown_minute(noon, noon + 1000) == "12:00 UTC");
    CHECK(shown_minute(noon + 5000, noon) == "12:00:05 UTC");
    CHECK(shown_minute(noon + 3'600'000, noon) == "13:00 UTC");
    CHECK(shown_time(noon) == "2026-11-21 12:00:00 UTC");
  }
  const test::InZone behind("XYZ9");
  CHECK(shown_time(noon) == "2026-11-21 03:00:00 -09:00");
  CHECK(shown_minute(noon, noon) == "03:00 -09:00");
  CHECK(shown_minute(noon + 24 * 3'600'000, noon) == "2026-11-22 03:00 -09:00");
  const test::InZone greenwich("UTC0");
  CHECK(shown_time(noon) == "2026-11-21 12:00:00 +00:00");
}

TEST_CASE("time: every verb that shows times has one way to write them")
{
  const test::InZone ahead("XYZ-1:30");
  const std::string moment = "2026-11-21 13:30:00 +01:30";
  const auto has_moment = [&](const std::string& text) { return text.find(moment) != std::string::npos; };
  const PastRun run{.owner = Owner::of("o:1"), .start_ms = noon, .duration = Millis{5}};
  LockState state = held();
  CHECK(has_moment(show_status(state, noon)));
  const LockName stock = name("stock");
  CHECK(has_moment(show_history({{&stock, &run}}, true)));
  CHECK(has_moment(
      show_event({name("stock"), {.what = LockEvent::What::acquired, .time_ms = noon, .owner = Owner::of("o:1")}})));
  state.once = OnceSuccess{.at_ms = noon, .remembered_for = Millis{5000}, .ago = Millis{1000}};
  CHECK(show_status(state, noon).find("succeeded " + moment) != std::string::npos);
  CHECK(show_status(state, noon).find("the server forgets that at 2026-11-21 13:30:05 +01:30\n") != std::string::npos);
  CHECK(status_json(state).find("\"2026-11-21T12:00:00.123Z\"") != std::string::npos);
}

TEST_CASE("an exit code names the signal that it tells of")
{
  const auto outcome = [](int code) {
    return show_outcome({.owner = Owner::of("o:1"), .exit_code = code, .outcome = Outcome::failed});
  };
  CHECK(outcome(3) == "failed (exit 3)");
  CHECK(outcome(128) == "failed (exit 128)");
  CHECK(outcome(137) == "failed (exit 137 KILL)");
  CHECK(outcome(143) == "failed (exit 143 TERM)");
  CHECK(outcome(255) == "failed (exit 255)");
}

TEST_CASE("text takes the columns that a terminal gives it")
{
  CHECK(width("abc") == 3);
  CHECK(width("é") == 1);
  CHECK(width("e\xcc\x81") == 1);  // with a combining accent
  CHECK(width("日本") == 4);
  CHECK(width("🚀 x") == 4);
  CHECK(fitted("日本", 6) == "日本  ");
  CHECK(clipped("日本語", 5) == "日本…");
  CHECK(clipped("日本語", 4) == "日…");  // the other column stays empty
  CHECK(fitted("日本語", 4) == "日… ");
  CHECK(clipped("e\xcc\x81x", 2) == "e\xcc\x81x");
}

TEST_CASE("json: the names that scripts rely on")
{
  CHECK(
      status_json(held()) ==
      R"({"key":"stock","held":true,"format":"redisson","mode":"plain","limit":null,"ttl_ms":28400,)"
      R"("fence":1732190400123456,"holders":[)" +
          std::string(ours_json) +
          R"(],"waiting":[],"last_run":null,"once":null,)"
          R"("every_ms":null,"last_success":null,"last_failure":null,"skips":0,"overdue":null,"frozen":null,"pool":null})" +
          "\n");
  CHECK(status_json(vacant()) ==
        R"({"key":"free","held":false,"format":"redisson","mode":"plain","limit":null,"ttl_ms":0,)"
        R"("fence":null,"holders":[],"waiting":[],"last_run":null,"once":null,)"
        R"("every_ms":null,"last_success":null,"last_failure":null,"skips":0,"overdue":null,"frozen":null,"pool":null})"
        "\n");
  CHECK(
      status_json(foreign()) ==
      R"({"key":"java","held":true,"format":"redisson","mode":"plain","limit":null,"ttl_ms":null,)"
      R"("fence":null,"holders":[{"token":"uuid:1","owner":"uuid:1","count":2,"host":null,"pid":null,)"
      R"("user":null,"sudo_user":null,"command":null,"label":null,"since":null,"lease_ms":null,"auto":null,"revoked":false,"job_over":null,"freeze":null}],)"
      R"("waiting":[],"last_run":null,"once":null,)"
      R"("every_ms":null,"last_success":null,"last_failure":null,"skips":0,"overdue":null,"frozen":null,"pool":null})"
      "\n");
  CHECK(ttl_json(held()) == "{\"key\":\"stock\",\"ttl_ms\":28400}\n");
  CHECK(ttl_json(vacant()) == "{\"key\":\"free\",\"ttl_ms\":0}\n");
  CHECK(ttl_json(foreign()) == "{\"key\":\"java\",\"ttl_ms\":null}\n");
  CHECK(version_json("1.2.3", {"redis", "etcd"}) == "{\"version\":\"1.2.3\",\"stores\":[\"redis\",\"etcd\"]}\n");
}

TEST_CASE("json: the waiters, in their order, and null for what is unknown")
{
  LockState state = vacant();
  state.waiting = {bob("nightly"), nameless()};
  state.waiting[0].info->priority = 7;
  state.waiting[1].passed = 101;
  CHECK(
      status_json(state) ==
      R"({"key":"free","held":false,"format":"redisson","mode":"plain","limit":null,"ttl_ms":0,)"
      R"("fence":null,"holders":[],"waiting":[)"
      R"({"place":1,"token":"b0b:1","connected":true,"priority":7,"starved":false,"host":"web2","pid":72,"user":"bob","sudo_user":null,"command":"./night.sh",)"
      R"("label":"nightly","since":"2026-11-21T12:00:01.123Z","freeze":null},)"
      R"({"place":2,"token":"uuid:2","connected":true,"priority":0,"starved":true,"host":null,"pid":null,"user":null,"sudo_user":null,"command":null,)"
      R"("label":null,"since":null,"freeze":null}],"last_run":null,"once":null,)"
      R"("every_ms":null,"last_success":null,"last_failure":null,"skips":0,"overdue":null,"frozen":null,"pool":null})"
      "\n");
  state.waiting.resize(12, nameless());
  state.waiting.back().is_connected = false;
  CHECK(status_json(state).find(R"("place":12,"token":"uuid:2","connected":false,)") != std::string::npos);
}

TEST_CASE("json: bytes that are not UTF-8 do not stop it")
{
  LockState state = vacant();
  state.name = name("a\xff");
  CHECK(ttl_json(state) == "{\"key\":\"a\xef\xbf\xbd\",\"ttl_ms\":0}\n");
}

TEST_CASE("force-unlock: how it ended, in JSON, in words and as a code")
{
  struct Row {
    ForceEnd end;
    std::string json;
    const char* begins;
    ExitCode code;
  };
  const std::string holder = ours_json;
  const std::string not_revoked = R"("revoked":false)";
  const std::string revoked =
      std::string(holder).replace(holder.find(not_revoked), not_revoked.size(), R"("revoked":true)");
  const Row rows[] = {
      {ReleasedByHolder{rlock_holder()}, R"("broken":true,"how":"released","holder":)" + holder, "stock: released by ",
       ExitCode::ok},
      {Broken{rlock_holder()}, R"("broken":true,"how":"broken","holder":)" + holder, "stock: broken; it was held by ",
       ExitCode::ok},
      {ForceExpired{rlock_holder(), true}, R"("broken":true,"how":"expired","holder":)" + revoked,
       "stock: revoked and expired; it was held by ", ExitCode::ok},
      {ForceExpired{rlock_holder()}, R"("broken":true,"how":"expired","holder":)" + holder,
       "stock: expired; it was held by ", ExitCode::ok},
      {ForceChanged{rlock_holder()}, R"("broken":false,"how":null,"holder":)" + holder,
       "stock: held by another holder, ", ExitCode::no},
      {ForceFree{}, R"("broken":false,"how":null,"holder":null)", "stock: free; nothing", ExitCode::no},
      {StillStopping{.holder = rlock_holder(), .waited = Millis{15'000}},
       R"("broken":false,"how":null,"holder":)" + holder,
       "stock: alice@web1 (pid 71), running ./job.sh, was asked to stop 15s ago and has not ended: it may be cleaning "
       "up",
       ExitCode::busy},
  };
  for (const Row& row : rows) {
    CHECK(force_json(name("stock"), row.end) == R"({"key":"stock",)" + row.json + ",\"reason\":null}\n");
    CHECK(show_force(name("stock"), row.end).starts_with(row.begins));
    CHECK(exit_code_of_force(row.end) == row.code);
  }
  Holder run = rlock_holder();
  run.owner = Owner::of("8743c9c0:71");
  CHECK(
      describe(StillStopping{.holder = run, .waited = Millis{15'000}})
          .starts_with(
              "alice@web1 (pid 71), running ./job.sh, has been stopping its job for 15s, but the job does not end: "));
}

TEST_CASE("force-unlock: that the job is dead is said of a run, whose process took the lock, and of no script")
{
  Holder run = rlock_holder();
  run.owner = Owner::of("8743c9c0:71");
  CHECK(show_force(name("stock"), ReleasedByHolder{run}) ==
        "stock: released by alice@web1 (pid 71), running ./job.sh; its job is dead\n");
  CHECK(show_force(name("stock"), ReleasedByHolder{rlock_holder()}) ==
        "stock: released by alice@web1 (pid 71), running ./job.sh\n");
}

TEST_CASE("force-unlock: how it ended for a key that may hold the data of another program")
{
  const Holder data{.owner = Owner::of("it's"), .count = 1, .info = std::nullopt};
  const std::pair<ForceEnd, const char*> rows[] = {
      {ReleasedByHolder{data}, R"(stock: gone, and not by this request; it held 'it'\''s')"},
      {ForceExpired{data}, R"(stock: expired; it held 'it'\''s')"},
      {Broken{data}, R"(stock: deleted; it held 'it'\''s'; if that was a lock, its job may still be running)"},
      {ForceChanged{data}, R"(stock: holds another value, 'it'\''s'; nothing was done)"},
      {ForceFree{}, "stock: free; nothing was done"},
  };
  for (const auto& [end, text] : rows) {
    CHECK(show_force(name("stock"), end, false) == text + std::string("\n"));
  }
}

TEST_CASE("status: in words")
{
  const test::InUtc in_utc;
  CHECK(show_status(held(), noon + 303'000) ==
        "stock: held\n"
        "  holder   alice@web1 (pid 71)\n"
        "  running  ./job.sh\n"
        "  since    2026-11-21 12:00:00 UTC (5m 3s ago)\n"
        "  token    8743c9c0:1\n"
        "  ttl      28s, renewed while the job runs\n"
        "  fence    1732190400123456\n"
        "  if stuck rlock force-unlock -k stock --token 8743c9c0:1\n");
  CHECK(show_status(foreign(), noon) ==
        "java: held\n"
        "  holder   uuid:1 (another client, of which rlock knows no more)\n"
        "  count    2\n"
        "  ttl      none: it never expires by itself\n"
        "  if stuck rlock force-unlock -k java --token uuid:1\n");
  CHECK(show_status(vacant(), noon) == "free: free\n");
}

TEST_CASE("status: the line of a run that was skipped says so once")
{
  const test::InUtc in_utc;
  const auto run = [](const char* owner, std::int64_t start_ms, Outcome outcome) {
    return PastRun{.owner = Owner::of(owner), .start_ms = start_ms, .duration = Millis{3000}, .outcome = outcome};
  };
  LockState state = vacant();
  state.runs = {run("b:2", noon + 60'000, Outcome::skipped), run("a:1", noon, Outcome::succeeded)};
  state.runs.front().busy_by = "alice@web1 (pid 71)";
  const std::string last = "  last run 2026-11-21 12:00:00 UTC (2m ago), 3s, succeeded, by a:1\n";
  CHECK(show_status(state, noon + 120'000) ==
        "free: free\n" + last +
            "  skipped  2026-11-21 12:01:00 UTC (1m ago), 3s, by b:2 (held by alice@web1 (pid 71))\n");
  state.runs.front().times = 4;
  const std::string skips =
      "  skipped  2026-11-21 12:01:00 UTC (1m ago), 3s, 4 times, by b:2 (held by alice@web1 (pid 71))\n";
  CHECK(show_status(state, noon + 120'000) == "free: free\n" + last + skips);
}

TEST_CASE("status: it advises to end the hold of each holder, the one that has held for longest first, three at most")
{
  const auto advice = [](std::vector<std::optional<Millis>> ages) {
    LockState state = held();
    state.name = name("two words");
    state.holders.resize(ages.size(), state.holders.front());
    for (std::size_t i = 0; i < ages.size(); ++i) {
      state.holders[i].age = ages[i];
      state.holders[i].owner = Owner::of("owner:" + std::to_string(i));
    }
    const std::string text = show_status(state, noon);
    REQUIRE(text.find("  if stuck rlock force-unlock -k 'two words' --token ") != std::string::npos);
    std::string owners;
    for (auto at = text.find("--token owner:"); at != std::string::npos; at = text.find("--token owner:", at + 1)) {
      owners += text.at(at + std::string("--token owner:").size());
    }
    return owners;
  };
  using namespace std::chrono_literals;
  CHECK(advice({3h + 59min}) == "0");
  CHECK(advice({std::nullopt}) == "0");
  CHECK(advice({5s, 2min, std::nullopt}) == "102");
  CHECK(advice({std::nullopt, 1ms}) == "10");
  CHECK(advice({1s, 2s, 3s, 4s}) == "321");

  CHECK(show_status(held(), noon, Colors(), " -S @prod")
            .find("\n  if stuck rlock force-unlock -k stock -S @prod --token 8743c9c0:1\n") != std::string::npos);

  LockState data = foreign();
  data.proven = false;
  CHECK(show_status(data, noon).find("force-unlock") == std::string::npos);
}

TEST_CASE("status, list: a hold whose renewals are refused is marked, and not to be forced again")
{
  LockState state = held();
  CHECK(revoked_mark(state).empty());
  state.holders.front().revoked = true;
  CHECK(revoked_mark(state) == " (revoked)");
  const std::string text = show_status(state, noon);
  CHECK(text.find("  revoked  its renewals are refused (force-unlock), so it ends with its ttl\n") !=
        std::string::npos);
  CHECK(text.find("  ttl      28s, not renewed\n") != std::string::npos);
  CHECK(text.find("if stuck") == std::string::npos);
  CHECK(show_list({state}, noon).find("alice@web1 (pid 71) (revoked)  ") != std::string::npos);
  CHECK(show_all({state}, noon).find("alice@web1 (pid 71) (revoked)  ") != std::string::npos);
  CHECK(show_all({held()}, noon + 303'000).find("  TTL  AGE    SUCCESS") != std::string::npos);
  CHECK(show_all({held(), vacant()}, noon + 303'000).find("(pid 71)  28s  5m 3s  -") != std::string::npos);
  CHECK(status_json(state).find(R"("auto":true,"revoked":true,)") != std::string::npos);
  state.holders.front().info->every = std::chrono::hours{26};
  CHECK(show_all({state}, noon).find("  1d 2h  ") != std::string::npos);  // as the other columns write durations

  state.holders.push_back(rlock_holder());
  state.holders.back().owner = Owner::of("other:2");
  state.count = 2;
  CHECK(revoked_mark(state) == " (1 of 2 revoked)");
  CHECK(show_status(state, noon).find("  if stuck rlock force-unlock -k stock --token other:2\n") != std::string::npos);
}

TEST_CASE("status: the queue in words, ten at most")
{
  const test::InUtc in_utc;
  LockState state = vacant();
  state.waiting = {bob(""), nameless()};
  CHECK(show_status(state, noon + 9000) ==
        "free: free\n"
        "  waiting  1  bob@web2 (pid 72), since 2026-11-21 12:00:01 UTC (8s ago), "
        "running ./night.sh\n"
        "           2  uuid:2\n");
  const auto ends = [&](std::size_t count, const char* text) {
    LockState crowded = foreign();
    crowded.waiting.resize(count, nameless());
    return show_status(crowded, noon).ends_with(text);
  };
  CHECK(ends(10, "           9   uuid:2\n           10  uuid:2\n"));
  CHECK(ends(11, "           10  uuid:2\n           … and 1 more\n"));
  CHECK(ends(1000, "           10  uuid:2\n           … and 990 more\n"));
  LockState passed = foreign();
  passed.waiting = {nameless(), nameless()};
  passed.waiting[0].info =
      HolderInfo{.host = "web2", .pid = 72, .user = "bob", .command = {}, .label = {}, .priority = -5};
  passed.waiting[0].passed = 100;
  passed.waiting[1].passed = 101;
  CHECK(show_status(passed, noon)
            .ends_with("  waiting  1  bob@web2 (pid 72), priority -5\n"
                       "           2  uuid:2, starved: 101 later callers were put in front of it\n"));
  LockState far = foreign();
  far.waiting.resize(12, nameless());
  for (std::size_t i = 8; i < far.waiting.size(); ++i) {
    far.waiting[i].is_connected = false;
  }
  CHECK(show_status(far, noon).ends_with(
      "           8   uuid:2\n           9   uuid:2 (not connected)\n           10  uuid:2 (not connected)\n"
      "           … and 2 more\n"
      "           4 of these 12 are not connected: those far back ask every few seconds\n"));
}

TEST_CASE("list: a table of what is held, aligned by character")
{
  LockState accented = held();
  accented.name = name("caf\xc3\xa9");
  accented.waiting.resize(12, nameless());
  CHECK(show_list({accented, vacant(), foreign()}, noon + 60'000) ==
        "KEY   HOLDER               TTL    AGE  WAITING  COMMAND\n"
        "caf\xc3\xa9  alice@web1 (pid 71)  28s    1m   12       ./job.sh\n"
        "java  uuid:1               never  -    0        -\n");
  CHECK(show_list({vacant()}, noon).empty());
}

TEST_CASE("list: sorted by age, ttl, queue or key, and equal ones by key")
{
  const auto state = [](const char* key, std::int64_t since_ms, std::optional<Millis> ttl, std::size_t waiting) {
    LockState made = held();
    made.name = name(key);
    made.holders[0].info->since_ms = since_ms;
    made.ttl = ttl;
    made.waiting.resize(waiting, nameless());
    return made;
  };
  std::vector<LockState> states{state("d", noon + 1, std::nullopt, 1), state("c", noon - 5000, Millis{9}, 0),
                                state("b", noon - 9000, Millis{7}, 3), state("a", noon - 5000, Millis{8}, 0)};
  const auto order = [&](SortBy sort) {
    std::string keys;
    sort_locks(states, sort, noon);
    for (const LockState& each : states) {
      keys += each.name.text();
    }
    return keys;
  };
  CHECK(order(SortBy::age) == "bacd");  // the clock of d's host is ahead: its age is unknown
  CHECK(order(SortBy::ttl) == "bacd");
  CHECK(order(SortBy::waiting) == "bdac");
  CHECK(order(SortBy::key) == "abcd");
}

TEST_CASE("colors: only where they are asked for, and they take no column")
{
  CHECK(show_status(vacant(), noon, Colors(true)) == "\x1b[1mfree\x1b[0m: \x1b[32mfree\x1b[0m\n");
  CHECK(show_status(held(), noon, Colors(true)).starts_with("\x1b[1mstock\x1b[0m: \x1b[33mheld\x1b[0m\n"));
  const std::string plain = show_list({held()}, noon);
  const std::size_t line = plain.find('\n');
  CHECK(show_list({held()}, noon, Colors(true)) == "\x1b[1m" + plain.substr(0, line) + "\x1b[0m" + plain.substr(line));
}

TEST_CASE("what comes from the server cannot move the cursor")
{
  LockState state = held();
  state.holders[0].info->command = "\x1b[2J\n";
  state.holders[0].info->user = "\x1b";
  state.waiting = {bob(""), {Owner::of("\x1b"), {}}};
  state.waiting[0].info->command = "\x1b\n";
  state.waiting[0].info->host = "\x1b";
  for (const std::string& text : {show_status(state, noon), show_list({state}, noon)}) {
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("\\x1b[2J\\n") != std::string::npos);
  }
}
