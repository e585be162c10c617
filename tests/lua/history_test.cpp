// SPDX-License-Identifier: Apache-2.0
// What the scripts keep of the runs of a lock: how long, and what of runs that gave up.
#include "lua/kinds.h"

#include "base/defaults.h"
#include "lock/event_log.h"
#include "lock/past_run.h"
#include "lua/scripts.h"

using namespace rlock::test;

namespace {

const std::string events = "rlock:events:{k}";
constexpr std::int64_t month = 2'592'000'000;

const std::vector<LockKind> modes{Plain{}, StringLock{}, Writer{}, Reader{}, Permits{1}};

Reply acquire_with(const ScriptedLock& lock, const LockKind& kind, const std::string& owner, const std::string& info)
{
  return lock.eval(scripts_of(kind).acquire, owner, {owner, "30000", info, "try", "0", "0"});
}

Reply release_with(const ScriptedLock& lock, const LockKind& kind, const std::string& owner, const std::string& result,
                   const std::string& history)
{
  return lock.eval(scripts_of(kind).release, owner, {owner, "0", "0", "0", result, history});
}

Reply skip(const ScriptedLock& lock, const std::string& owner, const std::string& client = "h",
           const std::string& newer = "")
{
  const std::string info = "host=" + client + "\npid=" + owner + "\nuser=u\nsince=" + owner;
  return lock.eval(scripts_of(Plain{}).skip, owner, {info, "5", "", newer});
}

// The entries, with the first word after the time, its value, and of a skip the count.
std::string told(const ScriptedLock& lock)
{
  std::string all;
  for (const std::string& text : as_texts(lock.server.command({"LRANGE", events, "0", "-1"}))) {
    const EventLogEntry entry = EventLogEntry::of(text);
    REQUIRE(entry.kind);
    all += (all.empty() ? "" : " ") + std::string(word_of(event_kinds, *entry.kind)) + ":" + entry.owner +
           (entry.kind == EventKind::skipped ? std::to_string(entry.times) : "");
  }
  return all;
}

}  // namespace

TEST_EACH_KIND("history: a log is kept for the longest --history of its writers")
{
  const auto left = [&] { return lock.pttl(events); };
  REQUIRE(word(lock.acquire("a")) == "granted");
  CHECK(left() <= default_history.count());
  CHECK(left() > default_history.count() * 9 / 10);
  REQUIRE(word(lock.release("a")) == "released");
  REQUIRE(word(acquire_with(lock, kind.kind, "b", "history=2592000000\nhost=h\npid=1")) == "granted");
  CHECK(left() > month * 9 / 10);
  CHECK(left() <= month);
  REQUIRE(word(lock.release("b")) == "released");
  REQUIRE(word(lock.acquire("c")) == "granted");
  REQUIRE(word(lock.take_away("c")) == "broken");
  CHECK(left() > month * 9 / 10);  // neither one without --history nor trouble shortens it

  lock.server.command({"PEXPIRE", events, "1000"});
  REQUIRE(word(lock.acquire("d")) == "granted");
  REQUIRE(word(release_with(lock, kind.kind, "d", "", "7200000")) == "released");
  CHECK(left() > 7'000'000);
}

SCRIPT_CASE("history: a log that lost its ttl gets one again")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  lock.server.command({"PERSIST", events});
  REQUIRE(word(lock.release("a")) == "released");
  CHECK(lock.pttl(events) > 0);
}

TEST_CASE("history: a release adds what the run ended with, and gives the same answer when it is sent twice")
{
  using namespace std::string_literals;
  for (const Kind& kind : kinds) {
    CAPTURE(shown(kind));
    const ScriptedLock lock(kind.kind);
    REQUIRE(word(lock.acquire("a")) == "granted");
    const std::string result = "\0exit\0007"s;
    CHECK(word(release_with(lock, kind.kind, "a", result, "")) == "released");
    CHECK(word(release_with(lock, kind.kind, "a", result, "")) == "released");
    const auto log = as_texts(lock.server.command({"LRANGE", events, "0", "-1"}));
    REQUIRE(log.size() == 2);
    CHECK(EventLogEntry::of(log[1]).result.exit_code == 7);
    CHECK(EventLogEntry::of(log[1]).owner == "a");
  }
}

TEST_CASE("history: the release of a lost run tells of it where the log has forgotten it, once")
{
  using namespace std::string_literals;
  for (const Kind& kind : kinds) {
    CAPTURE(shown(kind));
    const ScriptedLock lock(kind.kind);
    const auto release = [&](const std::string& info) {
      return lock.eval(scripts_of(kind.kind).release, "a",
                       {"a", "0", "0", "0", "\0outcome\0lost\0fence\0007"s, "", info});
    };
    CHECK(word(release("")) == "lost");  // of a token that was released long ago
    CHECK(lock.pttl(events) == -2);
    for (int sent = 0; sent < 2; ++sent) {
      CHECK(word(release("history=2592000000\nhost=h\npid=1")) == "lost");
      const auto log = as_texts(lock.server.command({"LRANGE", events, "0", "-1"}));
      REQUIRE(log.size() == 1);
      const EventLogEntry entry = EventLogEntry::of(log[0]);
      CHECK(entry.kind == EventKind::lost);
      CHECK(entry.owner == "a");
      REQUIRE(entry.info);
      CHECK(entry.info->pid == 1);
      CHECK(entry.result.fence == 7);
      CHECK(lock.pttl(events) > month * 9 / 10);
    }
  }
}

SCRIPT_CASE("history: the skips of one client in a row are one entry, which counts them")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  for (const char* owner : {"1", "2", "3"}) {
    CHECK(word(skip(lock, owner)) == "skipped");
  }
  CHECK(told(lock) == "acquired:a skipped:33");
  CHECK(word(skip(lock, "3")) == "skipped");  // sent twice
  CHECK(told(lock) == "acquired:a skipped:33");
  CHECK(word(skip(lock, "4", "other")) == "skipped");
  CHECK(word(skip(lock, "5")) == "skipped");
  CHECK(told(lock) == "acquired:a skipped:41 skipped:54");  // in the order of time
  REQUIRE(word(lock.release("a")) == "released");
  CHECK(word(skip(lock, "6")) == "skipped");
  CHECK(told(lock) == "acquired:a skipped:41 skipped:54 released:a skipped:61");
}

SCRIPT_CASE("history: a replaced run names the newer one, and is no entry with those that found the lock busy")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  CHECK(word(skip(lock, "1")) == "skipped");
  CHECK(word(skip(lock, "2", "h", "host=new")) == "skipped");
  CHECK(told(lock) == "acquired:a skipped:11 skipped:21");
  CHECK(word(skip(lock, "3", "h", "host=newest")) == "skipped");
  CHECK(told(lock) == "acquired:a skipped:11 skipped:32");
  const std::vector<std::string> entries = as_texts(lock.server.command({"LRANGE", events, "0", "-1"}));
  CHECK(EventLogEntry::of(entries.back()).by == "host=newest");
  CHECK(EventLogEntry::of(entries.at(1)).holder == "a");
}

SCRIPT_CASE("history: skips of many clients in a row keep the runs in the log")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  for (int i = 0; i < 300; ++i) {
    REQUIRE(word(skip(lock, std::to_string(i), "h" + std::to_string(i % 20))) == "skipped");
  }
  CHECK(as_int(lock.server.command({"LLEN", events})) == 3);
  CHECK(told(lock).starts_with("acquired:a skipped:2981 "));
  CHECK(lock.pttl(events) > 0);
}

SCRIPT_CASE("history: a log of skips alone keeps its ttl, and gets one when it is new")
{
  CHECK(word(skip(lock, "1")) == "skipped");
  CHECK(lock.pttl(events) > default_history.count() * 9 / 10);
  lock.server.command({"PEXPIRE", events, std::to_string(month)});
  CHECK(word(skip(lock, "2")) == "skipped");
  CHECK(lock.pttl(events) > month * 9 / 10);
  CHECK(lock.lasting().empty());
}

SCRIPT_CASE("history: a full memory leaves the log as it was, or takes the skip")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  REQUIRE(word(skip(lock, "1")) == "skipped");
  lock.server.command({"CONFIG", "SET", "maxmemory", "1"});
  skip(lock, "2");
  skip(lock, "3", "other");
  lock.server.command({"CONFIG", "SET", "maxmemory", "0"});
  CHECK(told(lock).starts_with("acquired:a skipped:"));
  CHECK(lock.pttl(events) > 0);
}

TEST_EACH_KIND("history: inspect returns the log when it is asked for, and changes nothing")
{
  REQUIRE(word(lock.acquire("a")) == "granted");
  REQUIRE(word(lock.release("a")) == "released");
  REQUIRE(word(lock.acquire("b")) == "granted");
  const auto entries = [&](const std::string& from) {
    return lock.eval(scripts_of(kind.kind).inspect, "", {from}).elements.at(12).elements.size();
  };
  CHECK(entries("0") == 3);
  CHECK(entries("-2") == 2);
  CHECK(lock.holders().size() == 1);
}

TEST_EACH_KIND(
    "history: forget leaves all of a lock that was granted meanwhile, and of a free one the fencing number alone")
{
  const auto forget = [&] {
    const LockKeys keys(*LockName::parse("k"), kind.kind);
    return lock.server.command({"EVAL", scripts::forget.source(), "6", keys.lock, keys.second, keys.own_number,
                                keys.events, keys.holder, keys.force});
  };
  REQUIRE(word(lock.acquire("a")) == "granted");
  CHECK(forget().elements.at(0).integer == 0);
  CHECK(told(lock) == "acquired:a");
  CHECK(word(lock.renew("a")) == "kept");
  REQUIRE(word(lock.release("a")) == "released");
  CHECK(forget().elements.at(0).integer == 1);
  CHECK(as_texts(lock.server.command({"KEYS", "*"})) == Words{"redisson_lock_token:{k}"});
  CHECK(forget().elements.at(0).integer == 0);
}

EACH_MODE_CASE("history: a waiter whose claim an operator took says once that no job began, and stays in line")
{
  const ScriptedLock lock(kind);
  const LockKind holder_kind = std::holds_alternative<Reader>(kind) ? LockKind(Writer{}) : kind;
  REQUIRE(word(lock.acquire_as(holder_kind, "h")) == "granted");
  const Reply busy = lock.wait("a");
  REQUIRE(word(busy) == "busy");
  const std::string ticket = busy.elements.at(6).text;
  REQUIRE(word(lock.release_as(holder_kind, "h")) == "released");
  REQUIRE(word(lock.take_away("a")) == "broken");
  REQUIRE(word(lock.acquire_as(holder_kind, "next")) == "granted");
  for (int sent = 0; sent < 2; ++sent) {
    CHECK(word(lock.wait("a", ticket)) == "busy");
  }
  std::vector<EventLogEntry> entries;
  for (const std::string& text : as_texts(lock.server.command({"LRANGE", events, "0", "-1"}))) {
    entries.push_back(EventLogEntry::of(text));
  }
  CHECK(std::ranges::count(entries, EventKind::unused, [](const EventLogEntry& each) { return each.kind; }) == 1);
  const auto is_holder = [](const Owner& owner) { return owner == Owner::of("next"); };
  const auto runs = past_runs(entries, is_holder, entries.back().time_ms);
  CHECK(std::ranges::none_of(runs, [](const PastRun& run) { return run.owner == Owner::of("a"); }));
}
