// SPDX-License-Identifier: Apache-2.0
// Readers and writers with real processes: which may hold together, the order of admission, and the state after kills.
#include "support/activity_log.h"
#include "support/foreign_kinds.h"
#include "support/integration.h"
#include "support/queue_fixture.h"

using namespace rlock::test;

namespace {

std::int64_t queue_length(const RedisServer& server) { return as_int(server.command({"ZCARD", "rlock:queue-rw:{k}"})); }

std::int64_t release_subscribers(const RedisServer& server)
{
  return server.command({"PUBSUB", "NUMSUB", "redisson_rwlock:{k}"}).elements.at(1).integer;
}

std::vector<std::string> lasting(const RedisServer& server)
{
  std::vector<std::string> keys;
  for (const std::string& key : as_texts(server.command({"KEYS", "*"}))) {
    if (as_int(server.command({"PTTL", key})) == -1) {
      keys.push_back(key);
    }
  }
  return keys;
}

// Jobs that log their begin and end to a file, and run until they are told to end.
class Diary {
 public:
  Diary() : m_dir(make_temp_dir("diary")) {}
  [[nodiscard]] std::vector<std::string> until_told(const std::string& name) const
  {
    return {"sh", "-c",
            "cd " + m_dir.string() + "; echo +" + name + " >> log; until [ -e go ]; do sleep 0.02; done; echo -" +
                name + " >> log"};
  }
  [[nodiscard]] std::string note(const std::string& what) const
  {
    return "echo " + what + " >> " + (m_dir / "log").string();
  }
  void tell(const std::string& file = "go") const { std::ofstream(m_dir / file) << "now\n"; }
  [[nodiscard]] std::filesystem::path path(const std::string& file) const { return m_dir / file; }
  [[nodiscard]] std::vector<std::string> lines() const
  {
    std::vector<std::string> all;
    for (const std::string& line : lines_of(text_of(m_dir / "log"))) {
      all.push_back(line);
    }
    return all;
  }
  [[nodiscard]] std::int64_t count(char first) const
  {
    const auto all = lines();
    return std::count_if(all.begin(), all.end(), [&](const std::string& line) { return line.front() == first; });
  }

 private:
  std::filesystem::path m_dir;
};

}  // namespace

TEST_SUITE_BEGIN("topology");

QUEUE_CASE("shared: ten readers are in at the same time, a writer when the last of them has left")
{
  const Diary diary;
  std::vector<Process> readers;
  for (int i = 0; i < 10; ++i) {
    readers.push_back(queue.start({"-s"}, diary.until_told("r" + std::to_string(i))));
  }
  wait_until([&] { return diary.count('+') == 10; }, "all ten read");
  wait_until([&] { return listening(queue.server) == 10; }, "their watchdogs listen");
  CHECK(release_subscribers(queue.server) == 0);  // else each would count as a foreign client that waits

  Process writer = queue.start({"-x"}, {"sh", "-c", diary.note("writer")});
  wait_until([&] { return queue_length(queue.server) == 1; }, "the writer waits");
  diary.tell();
  expect_ends(readers);
  CHECK(writer.wait() == success);
  CHECK(diary.lines().back() == "writer");
  CHECK(diary.count('-') == 10);
  CHECK(lasting(queue.server).empty());
}

TEST_CASE("shared: five writers in an endless stream of readers each pass all later readers")
{
  constexpr int loops = 4;
  const QueueFixture queue;
  const Diary diary;
  std::vector<Process> stream;
  std::string read;
  for (const std::string& word : queue.rlock("run", {"-s", "--", "sh", "-c"})) {
    read += "'" + word + "' ";
  }
  read += "'" + diary.note("+r") + "; sleep 0.15'";
  for (int i = 0; i < loops; ++i) {
    stream.emplace_back(std::vector<std::string>{
        "sh", "-c", "until [ -e " + diary.path("stop").string() + " ]; do " + read + " || exit; done"});
  }
  wait_until([&] { return diary.count('+') >= 2 * loops; }, "the stream flows");

  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    const std::string mark = "w" + std::to_string(i);
    Process writer = queue.start({"-x"}, {"sh", "-c", diary.note(mark)});
    const auto has_written = [&] {
      const auto lines = diary.lines();
      return std::find(lines.begin(), lines.end(), mark) != lines.end();
    };
    wait_until(
        [&] {
          const auto wishes = as_texts(queue.server.command({"HVALS", "rlock:waiters-rw:{k}"}));
          return std::find(wishes.begin(), wishes.end(), "write") != wishes.end() || has_written();
        },
        "the writer stands in line");
    const std::size_t before = diary.lines().size();
    CHECK(writer.wait(30s) == success);
    const auto lines = diary.lines();
    const auto its_turn = std::find(lines.begin(), lines.end(), mark) - lines.begin();
    // At most one reader of each loop was there before the writer and had not begun to write.
    CHECK(its_turn - static_cast<std::ptrdiff_t>(before) <= loops);
  }
  const std::int64_t readers = diary.count('+');
  wait_until([&] { return diary.count('+') >= readers + loops; }, "the stream goes on");
  diary.tell("stop");
  expect_ends(stream, 20s);
}

QUEUE_CASE("shared: killed readers and writers leave nothing stuck, and no job starts before theirs are dead")
{
  for (const bool writes : {false, true}) {
    CAPTURE(writes);
    const ActivityLog activity;
    const char* kind = writes ? "-x" : "-s";
    Process victim = queue.start({kind, "--ttl", "3s"}, activity.stubborn_tree("victim"));
    wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
    Process writer = queue.start({"-x", "--ttl", "5s"}, activity.short_job("writer", 60));
    wait_until([&] { return queue_length(queue.server) == 1; }, "the writer waits");
    Process reader = queue.start({"-s", "--ttl", "5s"}, activity.short_job("reader", 60));
    wait_until([&] { return queue_length(queue.server) == 2; }, "a reader waits behind it");
    victim.signal(SIGKILL);
    CHECK(writer.wait() == success);
    CHECK(reader.wait() == success);
    CHECK(overlap(activity.jobs()) == "");
    CHECK(activity.jobs().size() == 3);
    CHECK_FALSE(is_held(queue.server));
    CHECK(lasting(queue.server).empty());
  }
}

QUEUE_CASE("shared: the job of a reader whose hold was taken is dead before long, the others read on")
{
  const ActivityLog activity;
  const Diary diary;
  Process other = queue.start({"-s", "--ttl", "3s"}, diary.until_told("other"));
  wait_until([&] { return diary.count('+') == 1; }, "one reads");
  Process victim = queue.start({"-s", "--ttl", "3s"}, activity.stubborn_tree("victim"));
  wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
  std::vector<std::string> words{"DEL"};
  for (const std::string& key : as_texts(queue.server.command({"KEYS", "{k}:*:rwlock_timeout:1"}))) {
    if (has(key, ":" + std::to_string(victim.pid()) + ":")) {
      words.push_back(key);
    }
  }
  REQUIRE(words.size() == 2);
  const std::int64_t struck = now_ns();
  queue.server.command(words);
  CHECK(victim.wait() == exited(121));
  const Millis latest = 1s + 1s;  // the next renewal, and the kill grace of a job that ignores TERM
  CHECK((activity.jobs().at("victim").last_ns - struck) / 1'000'000 < latest.count());
  CHECK(has(victim.err(), "the lock k was lost: expired or deleted"));
  CHECK(other.running());
  diary.tell();
  CHECK(other.wait() == success);
}

QUEUE_CASE("shared: readers are woken by a foreign writer, a writer by the last foreign reader")
{
  const ForeignReadWrite java(queue.server, "uuid:1");
  struct Row {
    bool java_writes;
    const char* option;
  };
  for (const Row& row : {Row{true, "-s"}, Row{true, "-x"}, Row{false, "-x"}}) {
    CAPTURE(row.java_writes);
    CAPTURE(row.option);
    REQUIRE_FALSE((row.java_writes ? java.write() : java.read()).has_value());
    Process waiter = queue.start({row.option}, {"true"});
    wait_until([&] { return release_subscribers(queue.server) == 1; }, "the first waiter has subscribed to releases");
    const auto from = std::chrono::steady_clock::now();
    CHECK((row.java_writes ? java.end_write() : java.end_read()) == 1);
    // What Redisson's release publishes: 0 after a reader, 1 after a writer; the lease has 30 s to go.
    CHECK(waiter.wait(8s) == success);
    CHECK(std::chrono::steady_clock::now() - from < 4s);
  }
}

QUEUE_CASE("shared: a waiting writer learns of a foreign reader that came later")
{
  const Diary diary;
  const ForeignReadWrite java(queue.server, "uuid:1");
  Process reader = queue.start({"-s"}, diary.until_told("reader"));
  wait_until([&] { return diary.count('+') == 1; }, "one of ours reads");
  Process writer = queue.start({"-x"}, {"true"});
  wait_until([&] { return queue_length(queue.server) == 1 && listening(queue.server) >= 1; }, "a writer waits");
  REQUIRE_FALSE(java.read().has_value());
  diary.tell();
  CHECK(reader.wait() == success);
  wait_until([&] { return release_subscribers(queue.server) == 1; }, "the writer hears releases", 5s);
  CHECK(java.end_read() == 1);
  CHECK(writer.wait(4s) == success);
}

TEST_SUITE_END();
