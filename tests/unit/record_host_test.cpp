// SPDX-License-Identifier: Apache-2.0
// The event log of a lock, of which the record has the last entries only. The rest is beside the record.
#include "store/record/record_host.h"

#include "base/defaults.h"
#include "store/script/lock_keys.h"
#include "support/memory_backend.h"
#include "support/test.h"

#include <array>
#include <thread>

using namespace rlock::test;
using namespace rlock::record;
using namespace std::chrono_literals;

namespace {

class LogFixture {
 public:
  LogFixture() : m_host(memory_backend(m_store, m_clock), m_clock, std::make_unique<SystemRng>()) {}

  void command(const std::vector<std::string>& words)
  {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    const auto reply = m_host.command(m_lock, argv, limit());
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
