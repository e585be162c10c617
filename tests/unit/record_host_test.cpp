// SPDX-License-Identifier: Apache-2.0
// The event log of a lock, of which the record has the last entries only. The rest is beside the record.
#include "engine/record_host.h"

#include "base/defaults.h"
#include "engine/lock_keys.h"
#include "engine/script_store.h"
#include "lua/bytecode.h"
#include "lua/scripts.h"
#include "support/bare_backend.h"
#include "support/forwarding_backend.h"
#include "support/memory_backend.h"
#include "support/seeded_rng.h"
#include "support/stepped_clock.h"
#include "support/test.h"

#include <array>
#include <thread>

using namespace rlock::test;
using namespace rlock::record;

namespace {

class LogFixture {
 public:
  LogFixture() : m_host(memory_backend(m_store, m_clock), m_clock, std::make_unique<SystemRng>()) {}

  Result<Reply> answer(const std::vector<std::string>& words)
  {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    return m_host.command(m_lock, argv, limit());
  }
  void command(const std::vector<std::string>& words)
  {
    const auto reply = answer(words);
    REQUIRE_MESSAGE(reply, reply.error().text);
  }
  void append(const std::vector<std::string>& entries)
  {
    std::vector<std::string> words{"RPUSH", key};
    words.insert(words.end(), entries.begin(), entries.end());
    command(words);
  }
  std::vector<std::string> log()
  {
    const auto logs = m_host.logs(std::array{m_lock}, limit());
    REQUIRE(logs.front());
    return *logs.front();
  }
  // What the store has, also of a log that is over.
  std::vector<std::string> stored() { return *memory_backend(m_store, m_clock)->events(m_lock.text(), limit()); }

  const std::string key = LockKeys(*LockName::parse("k")).events;

 private:
  CallLimits limit() { return {.deadline = m_clock.now() + 10s, .stop = StopToken::never()}; }

  static inline int number = 0;
  BootClock m_clock;
  std::string m_store = "record-host-" + std::to_string(++number);
  LockName m_lock = *LockName::parse("k");
  RecordHost m_host;
};

// Counts the reads of one lock, and of its log.
class CountingBackend final : public ForwardingBackend {
 public:
  CountingBackend(std::unique_ptr<Backend> real, int& count) : ForwardingBackend(std::move(real)), m_count(count) {}
  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    ++m_count;
    return ForwardingBackend::read(name, limit);
  }
  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    ++m_count;
    return ForwardingBackend::events(name, limit);
  }

 private:
  int& m_count;
};

// A store that takes records of at most `longest` bytes.
class SmallBackend final : public ForwardingBackend {
 public:
  SmallBackend(std::unique_ptr<Backend> real, std::size_t longest)
      : ForwardingBackend(std::move(real)), m_longest(longest)
  {
  }
  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    ++commits;
    return change.bytes.size() > m_longest ? Commit{TooLarge{{ErrorCode::config, "too large"}}}
                                           : ForwardingBackend::write_if(name, version, change, limit);
  }
  int commits = 0;

 private:
  const std::size_t m_longest;
};

// A store whose clock has coarse steps.
class CoarseBackend final : public ForwardingBackend {
 public:
  CoarseBackend(std::unique_ptr<Backend> real, Millis behind) : ForwardingBackend(std::move(real)), m_behind(behind) {}
  [[nodiscard]] Millis time_behind() const override { return m_behind; }

 private:
  const Millis m_behind;
};

// Others are always faster. It cannot be reached any more when it was read `reads` times.
class CrowdedBackend final : public BareBackend {
 public:
  explicit CrowdedBackend(int reads) : m_reads(reads) {}
  Result<Snapshot> read(std::string_view, const CallLimits&) override
  {
    return m_reads-- > 0 ? Result(Snapshot{.version = "1", .bytes = {}, .time_us = 1, .listeners = {}})
                         : Error{ErrorCode::unreachable, "away"};
  }
  Result<Commit> write_if(std::string_view, const Version&, const Change&, const CallLimits&) override
  {
    return Commit{Conflict{}};
  }

 private:
  int m_reads;
};

// The first commit gets no answer, and reaches the store when the test says so.
class LateBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  Result<Commit> deliver(const CallLimits& limit)
  {
    return ForwardingBackend::write_if("k", m_version, {.bytes = m_bytes, .face = {}, .log = {}, .messages = {}},
                                       limit);
  }
  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    if (std::exchange(m_is_first, false)) {
      m_version = version;
      m_bytes = change.bytes;
      return Error{ErrorCode::unreachable, "no answer"};
    }
    return ForwardingBackend::write_if(name, version, change, limit);
  }

 private:
  bool m_is_first = true;
  Version m_version;
  std::string m_bytes;
};

// Passes the time of each pause at once, and notes it.
class PauseClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return m_now; }
  Wake sleep_until(Instant until, const StopToken&) const override
  {
    pauses.emplace_back(m_now, until - m_now);
    m_now = until;
    return Wake::due;
  }
  // Of those that began from `from` until `to`.
  [[nodiscard]] std::chrono::nanoseconds longest(Instant from, Instant to) const
  {
    std::chrono::nanoseconds longest{0};
    for (const auto& [began, pause] : pauses) {
      longest = began >= from && began < to ? std::max<std::chrono::nanoseconds>(longest, pause) : longest;
    }
    return longest;
  }

  mutable std::vector<std::pair<Instant, std::chrono::nanoseconds>> pauses;

 private:
  mutable Instant m_now{};
};

// The members of a store, of which the first reads go to those that do not serve.
class EnsembleBackend final : public ForwardingBackend {
 public:
  enum class Member { hangs, elects, is_down };

  EnsembleBackend(const PauseClock& clock, std::size_t members, std::vector<Member> asked)
      : ForwardingBackend(memory_backend("ensemble", clock)),
        m_clock(clock),
        m_members(members),
        m_asked(std::move(asked))
  {
  }
  [[nodiscard]] std::size_t members() const override { return m_members; }
  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    if (m_next == m_asked.size()) {
      return ForwardingBackend::read(name, limit);
    }
    switch (m_asked[m_next++]) {
      case Member::hangs:
        m_clock.sleep_until(limit.deadline, limit.stop);
        return Error{.code = ErrorCode::unreachable, .text = "no answer", .late = true};
      case Member::elects: return Error{.code = ErrorCode::unreachable, .text = "no leader", .was_there = true};
      case Member::is_down: break;
    }
    return Error{ErrorCode::unreachable, "connection refused"};
  }

 private:
  const PauseClock& m_clock;
  std::size_t m_members;
  std::vector<Member> m_asked;
  std::size_t m_next = 0;
};

// How long a request took that had 6 s; nullopt: it failed.
std::optional<Millis> time_on_ensemble(std::size_t members, std::vector<EnsembleBackend::Member> asked)
{
  const PauseClock clock;
  RecordHost host(std::make_unique<EnsembleBackend>(clock, members, std::move(asked)), clock,
                  std::make_unique<SeededRng>(1));
  const std::array<std::string_view, 2> argv{"GET", "k"};
  const Instant begun = clock.now();
  const auto reply = host.command(*LockName::parse("k"), argv, {.deadline = begun + 6s, .stop = StopToken::never()});
  const auto took = std::chrono::duration_cast<Millis>(clock.now() - begun);
  CHECK(took <= 6s);
  return reply ? std::optional(took) : std::nullopt;
}

// Of a request that has 30 ms on a clock that moves on by 1 ms each time it is read.
Error error_of_crowded(int reads)
{
  const SteppedClock clock(1ms);
  RecordHost host(std::make_unique<CrowdedBackend>(reads), clock, std::make_unique<SeededRng>(1));
  const std::array<std::string_view, 3> argv{"SET", "k", "v"};
  const auto reply =
      host.command(*LockName::parse("k"), argv, {.deadline = clock.now() + 30ms, .stop = StopToken::never()});
  REQUIRE(!reply);
  return reply.error();
}

}  // namespace

TEST_CASE("record host: the log has more entries than the record, in their order")
{
  LogFixture fixture;
  for (int i = 1; i <= 60; ++i) {
    fixture.append({std::to_string(i)});
  }
  const auto log = fixture.log();
  REQUIRE(log.size() == 60);
  CHECK(log.front() == "1");
  CHECK(log.back() == "60");
}

TEST_CASE("record host: a member that does not answer leaves time for the others")
{
  using enum EnsembleBackend::Member;
  CHECK(time_on_ensemble(3, {}) == 0ms);
  CHECK(time_on_ensemble(3, {hangs}) == 2s);
  CHECK(time_on_ensemble(3, {hangs, hangs}) == 4s);
  CHECK_FALSE(time_on_ensemble(3, {hangs, hangs, hangs}));
  CHECK_FALSE(time_on_ensemble(1, {hangs}));
}

TEST_CASE("record host: members that elect a leader are asked again, and one that is down is not")
{
  using enum EnsembleBackend::Member;
  const auto elected = time_on_ensemble(3, std::vector(20, elects));
  REQUIRE(elected);
  CHECK(*elected > 1s);
  CHECK(time_on_ensemble(3, {hangs, elects, elects}));
  CHECK_FALSE(time_on_ensemble(3, std::vector(100, elects)));
  CHECK_FALSE(time_on_ensemble(3, {is_down}));
  CHECK_FALSE(time_on_ensemble(1, {elects}));
}

TEST_CASE("record host: entries that a script cuts off at the end and writes again are there once")
{
  LogFixture fixture;
  fixture.append({"a", "b", "c"});
  fixture.command({"LTRIM", fixture.key, "0", "0"});
  CHECK(fixture.log() == std::vector<std::string>{"a"});
  fixture.append({"d"});
  CHECK(fixture.log() == std::vector<std::string>{"a", "d"});
  fixture.command({"DEL", fixture.key});
  CHECK(fixture.log().empty());
  CHECK(fixture.stored().empty());
}

TEST_CASE("record host: a log that is over is not shown, and the next commit deletes what is left of it")
{
  LogFixture fixture;
  fixture.append({"old"});
  fixture.command({"PEXPIRE", fixture.key, "1"});
  std::this_thread::sleep_for(20ms);
  CHECK(fixture.log().empty());
  fixture.append({"new"});
  CHECK(fixture.log() == std::vector<std::string>{"new"});
  CHECK(fixture.stored() == std::vector<std::string>{"new"});
}

TEST_CASE("record host: a log does not grow without bound, however many entries each commit has")
{
  for (const int at_once : {1, 2, 3}) {
    CAPTURE(at_once);
    LogFixture fixture;
    fixture.append({"first"});
    for (int i = 0; i < 200; ++i) {
      fixture.append(std::vector<std::string>(static_cast<std::size_t>(at_once), std::to_string(i)));
    }
    const auto count = static_cast<int>(fixture.stored().size());
    CHECK(count >= event_count);
    CHECK(count <= event_count + event_count / 4);
    CHECK(fixture.log().back() == "199");
  }
}

TEST_CASE("record host: a record has room for 1 000 waiters, and a change that would make it too long is refused")
{
  LogFixture fixture;
  const LockKeys keys(*LockName::parse("k"));
  const std::string info(450, 'i');  // with a long command and a label
  for (int number = 0; number < 1000; number += 50) {
    std::vector<std::string> waiters{"HSET", keys.waiters};
    std::vector<std::string> queue{"ZADD", keys.queue};
    for (int one = number; one < number + 50; ++one) {
      const std::string owner = "8743c9c0-498b-43a9-b5ba-3f5b3bde1e2a:" + std::to_string(100'000 + one);
      waiters.insert(waiters.end(), {owner, info, "wish:" + owner, ""});
      queue.insert(queue.end(), {std::to_string(one), owner});
    }
    fixture.command(waiters);
    fixture.command(queue);
  }

  const auto refused = fixture.answer({"HSET", keys.waiters, "too-long", std::string(longest_record, 'i')});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::server_not_ready);
  CHECK(refused.error().text == "the record of the lock k would have more than 1 MiB (too many waiters)");
  CHECK(fixture.answer({"HGET", keys.waiters, "too-long"})->kind == Reply::Kind::nil);  // nothing was written
  fixture.command({"DEL", keys.waiters});
}

TEST_CASE("record host: a store that answers with conflicts was there, also when it goes away or the time is over")
{
  const Error over = error_of_crowded(1000);
  CHECK(over.code == ErrorCode::server_not_ready);
  CHECK(over.was_there);
  const Error away = error_of_crowded(1);
  CHECK(away.code == ErrorCode::unreachable);
  CHECK(away.was_there);
  CHECK(away.answered);
  CHECK_FALSE(error_of_crowded(0).was_there);
  CHECK_FALSE(error_of_crowded(0).answered);
}

TEST_CASE("record host: who has tried for half of its time pauses as after its first conflict")
{
  const PauseClock clock;
  RecordHost host(std::make_unique<CrowdedBackend>(1'000'000), clock, std::make_unique<SystemRng>());
  const Instant begin = clock.now();
  const std::array<std::string_view, 3> change{"SET", "k", "1"};
  const auto late = host.command(*LockName::parse("k"), change, {.deadline = begin + 4s, .stop = StopToken::never()});
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::server_not_ready);
  CHECK(clock.longest(begin, begin + 2s) > 10ms);
  CHECK(clock.longest(begin + 2100ms, begin + 4s) > 0ms);
  CHECK(clock.longest(begin + 2100ms, begin + 4s) < 2ms);
}

TEST_CASE("record host: what an uncontended run needs of the scripts is bytecode of Lua 5.1")
{
  for (const Script* script : {&scripts::plain_acquire, &scripts::plain_release, &scripts::rw_acquire,
                               &scripts::permits_release, &scripts::string_acquire}) {
    CAPTURE(script->name);
    CHECK(script->first_part < script->order.size());
    CHECK(script->source().starts_with(script->source(ScriptPart::first)));
    CHECK(scripts::bytecode_of(*script, ScriptPart::first).starts_with("\x1bLuaQ"));
  }
  CHECK(scripts::bytecode_of(scripts::plain_release, ScriptPart::whole).starts_with("\x1bLuaQ"));
  CHECK(scripts::bytecode_of(scripts::plain_skip, ScriptPart::whole).empty());
}

TEST_CASE("record host: a commit without an answer cannot happen any more after the next request")
{
  const BootClock clock;
  const CallLimits limit{.deadline = clock.now() + 10s, .stop = StopToken::never()};
  const LockName lock = *LockName::parse("k");
  for (const bool is_new : {true, false}) {
    CAPTURE(is_new);
    const std::string store = is_new ? "record-host-late-new" : "record-host-late";
    if (!is_new) {
      RecordHost other(memory_backend(store, clock), clock, std::make_unique<SystemRng>());
      REQUIRE(other.command(lock, std::array<std::string_view, 3>{"SET", "other", "v"}, limit));
    }
    auto owned = std::make_unique<LateBackend>(memory_backend(store, clock));
    LateBackend& late = *owned;
    RecordHost host(std::move(owned), clock, std::make_unique<SystemRng>());
    REQUIRE_FALSE(host.command(lock, std::array<std::string_view, 3>{"SET", "k", "v"}, limit));
    const std::array<std::string_view, 2> look{"EXISTS", "k"};
    CHECK(host.command(lock, look, limit)->integer == 0);
    const auto delivered = late.deliver(limit);
    REQUIRE(delivered);
    CHECK(std::holds_alternative<Conflict>(*delivered));
    CHECK(host.command(lock, look, limit)->integer == 0);
  }
}

TEST_CASE("record host: what is asked of many locks is read at once, and a change between two questions is seen")
{
  const BootClock clock;
  const std::string store = "record-host-many";
  const auto limit = [&] { return CallLimits{.deadline = clock.now() + 10s, .stop = StopToken::never()}; };
  const PerAnswer limits{.clock = clock, .timeout = 10s, .whole = limit()};
  const auto opened = [&](int& count) {
    auto backend = std::make_unique<CountingBackend>(memory_backend(store, clock), count);
    return ScriptStore(std::make_unique<RecordHost>(std::move(backend), clock, std::make_unique<SystemRng>()), clock);
  };
  int own = 0;
  int others = 0;
  ScriptStore holder = opened(others);
  ScriptStore asking = opened(own);
  constexpr std::size_t locks = 70;
  std::vector<LockName> names;
  std::vector<EventLogQuery> queries;
  for (std::size_t i = 0; i < locks; ++i) {
    names.push_back(*LockName::parse("lock" + std::to_string(i)));
    queries.push_back({.name = names.back(), .after = ""});
    const LockSpec spec{.name = names.back(),
                        .kind = i % 2 == 0 ? LockKind(Plain{}) : LockKind(Reader{}),
                        .ttl = 60s,
                        .who = {},
                        .once = std::nullopt};
    REQUIRE(holder.acquire(spec, Owner::of("owner:" + std::to_string(i)), {}, limit()));
  }
  const auto held = [&] {
    const auto states = asking.states_of(names, limits);
    REQUIRE(states);
    REQUIRE(states->size() == locks);
    return std::ranges::count_if(*states, [](const LockState& each) { return each.held(); });
  };
  CHECK(held() == locks);
  CHECK(asking.list("*", limits)->size() == locks);
  CHECK(asking.past_runs(names, LogPart::all, limits)->size() == locks);
  CHECK(asking.read_logs(queries, limit())->size() == locks);
  CHECK(own == 0);
  const LockSpec first{.name = names[0], .kind = Plain{}, .ttl = 60s, .who = {}, .once = std::nullopt};
  REQUIRE(holder.release(first, Owner::of("owner:0"), {}, limit()));
  CHECK(held() == locks - 1);
}

TEST_CASE("record host: a renewal tells no time of a clock with coarse steps, which would seem to jump")
{
  const BootClock clock;
  const auto limit = [&] { return CallLimits{.deadline = clock.now() + 10s, .stop = StopToken::never()}; };
  const LockSpec spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 60s, .who = {}, .once = std::nullopt};
  const Owner owner = Owner::of("owner:1");
  for (const Millis behind : {0ms, 3000ms}) {
    CAPTURE(behind.count());
    auto backend = std::make_unique<CoarseBackend>(
        memory_backend("record-host-coarse-" + std::to_string(behind.count()), clock), behind);
    ScriptStore store(std::make_unique<RecordHost>(std::move(backend), clock, std::make_unique<SystemRng>()), clock);
    REQUIRE(store.acquire(spec, owner, {}, limit()));
    const auto renewal = store.renew(spec, owner, {}, limit());
    REQUIRE(renewal);
    REQUIRE(std::holds_alternative<Renewed>(*renewal));
    CHECK(std::get<Renewed>(*renewal).at.has_value() == (behind == 0ms));
  }
}

TEST_CASE("record host: a record too large for its store keeps a shorter log, and is refused when that is not enough")
{
  const BootClock clock;
  const CallLimits limit{.deadline = clock.now() + 10s, .stop = StopToken::never()};
  const LockName lock = *LockName::parse("k");
  const LockKeys keys(lock);
  auto owned = std::make_unique<SmallBackend>(memory_backend("record-host-small", clock), 2000);
  SmallBackend& small = *owned;
  RecordHost host(std::move(owned), clock, std::make_unique<SystemRng>());
  constexpr std::size_t entries = 40;
  for (std::size_t i = 0; i < entries; ++i) {
    const std::string entry = std::to_string(i) + std::string(250, 'e');
    const auto appended = host.command(lock, std::array<std::string_view, 3>{"RPUSH", keys.events, entry}, limit);
    REQUIRE_MESSAGE(appended, appended.error().text);
  }
  const auto logs = host.logs(std::array{lock}, limit);
  REQUIRE(logs.front());
  CHECK(logs.front()->size() == entries);
  CHECK(logs.front()->back().starts_with("39"));

  const int before = small.commits;
  const std::string value(2000, 'v');
  const auto refused = host.command(lock, std::array<std::string_view, 3>{"SET", "k", value}, limit);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::config);
  CHECK(refused.error().text == "too large");
  CHECK(small.commits - before < 6);
  CHECK(host.command(lock, std::array<std::string_view, 3>{"SET", "k", "v"}, limit));
}
