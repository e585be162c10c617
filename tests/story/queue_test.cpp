// SPDX-License-Identifier: Apache-2.0
// First come, first served, past the dead, whatever happens to messages, connections and the queue itself.
#include "support/redis_fixture.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"
#include "support/witness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

constexpr const char* queue = "rlock:queue:{k}";

std::int64_t in_line(const RedisServer& server) { return as_int(server.command({"ZCARD", queue})); }

std::int64_t listening(const RedisServer& server)
{
  return static_cast<std::int64_t>(as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:owner:*"})).size());
}

// Holders and waiters on one lock; each waiter's job writes its number into a file.
class Line {
 public:
  explicit Line(RedisOptions options = {}) : server(std::move(options)), m_dir(make_temp_dir("line")) {}

  Process hold(const std::string& ttl, std::vector<std::string> job = {"sleep", "100"})
  {
    Process holder(words({"--ttl", ttl}, std::move(job)));
    wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 1; }, "the lock is taken");
    return holder;
  }

  // Comes, and stands in line before the next one comes.
  void come(const std::string& ttl = "30s", const std::string& work = "")
  {
    const std::int64_t before = in_line(server);
    const std::string job = "echo " + std::to_string(waiters.size()) + " >> " + log().string() + work;
    waiters.emplace_back(words({"--ttl", ttl}, {"sh", "-c", job}));
    wait_until([&] { return in_line(server) > before; }, "one more stands in line");
  }

  void all_listen()
  {
    wait_until([&] { return listening(server) >= static_cast<std::int64_t>(waiters.size()); },
               "all waiters listen");
  }

  std::vector<int> ran() const
  {
    std::vector<int> numbers;
    std::ifstream file(log());
    for (int number = 0; file >> number;) {
      numbers.push_back(number);
    }
    return numbers;
  }

  RedisServer server;
  std::vector<Process> waiters;

 private:
  std::vector<std::string> words(std::vector<std::string> options, std::vector<std::string> job) const
  {
    std::vector<std::string> all{"run", "-S", server.url(), "-k", "k"};
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back("--");
    all.insert(all.end(), job.begin(), job.end());
    return rlock_argv(std::move(all));
  }
  std::filesystem::path log() const { return m_dir / "log"; }
  std::filesystem::path m_dir;
};

std::vector<int> first_numbers(int count, int leave_out_every = 0)
{
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) {
    if (leave_out_every == 0 || i % leave_out_every != 0) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

std::int64_t calls(const RedisServer& server, const std::string& command)
{
  const std::string stats = as_text(server.command({"INFO", "commandstats"}));
  const std::string mark = "cmdstat_" + command + ":calls=";
  const auto at = stats.find(mark);
  return at == std::string::npos ? 0 : std::stoll(stats.substr(at + mark.size()));
}

}  // namespace

TEST_CASE("queue: two hundred behind one holder run in order of arrival, each once")
{
  Line line;
  Process holder = line.hold("30s");
  for (int i = 0; i < 200; ++i) {
    line.come();
  }
  line.all_listen();
  holder.signal(SIGTERM);
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait(60s) == Exit{.code = 0, .signal = 0});
  }
  CHECK(line.ran() == first_numbers(200));
  CHECK(in_line(line.server) == 0);
}

TEST_CASE("queue: a waiter's life is three scripts and a subscription, however many wait")
{
  for (const int crowd : {10, 80}) {
    CAPTURE(crowd);
    Line line;
    Process holder = line.hold("30s");
    for (int i = 0; i < crowd; ++i) {
      line.come();
    }
    line.all_listen();
    const auto arrived = calls(line.server, "evalsha");
    holder.signal(SIGTERM);
    for (Process& waiter : line.waiters) {
      waiter.wait(60s);
    }
    // The holder: acquire (twice, the script being unknown at first), a look when it began to listen,
    // release (twice). Scripts that were unknown are sent again as EVAL, which is not counted here.
    CHECK(calls(line.server, "evalsha") <= 3 * crowd + 4);
    CHECK(arrived <= crowd + 3);
    CHECK(calls(line.server, "subscribe") <= crowd + 2);
  }
}

TEST_CASE("queue: every third waiter killed, one stopped: the others run in order")
{
  Line line;
  Process holder = line.hold("30s");
  for (int i = 0; i < 30; ++i) {
    line.come();
  }
  line.all_listen();
  for (std::size_t i = 0; i < line.waiters.size(); i += 3) {
    line.waiters[i].signal(SIGKILL);
  }
  line.waiters[10].signal(SIGSTOP);
  holder.signal(SIGTERM);
  for (std::size_t i = 0; i < line.waiters.size(); ++i) {
    if (i % 3 != 0 && i != 10) {
      CHECK(line.waiters[i].wait(30s) == Exit{.code = 0, .signal = 0});
    }
  }
  std::vector<int> expected = first_numbers(30, 3);
  std::erase(expected, 10);
  CHECK(line.ran() == expected);

  line.waiters[10].signal(SIGCONT);
  CHECK(line.waiters[10].wait(20s) == Exit{.code = 0, .signal = 0});  // late, but in its turn
  expected.push_back(10);
  CHECK(line.ran() == expected);
}

TEST_CASE("queue: the holder killed and the first in line as well: the next runs when the lease is over")
{
  Line line;
  Process holder = line.hold("2s");
  for (int i = 0; i < 3; ++i) {
    line.come();
  }
  line.all_listen();
  holder.signal(SIGKILL);
  line.waiters[0].signal(SIGKILL);
  const auto from = std::chrono::steady_clock::now();
  CHECK(line.waiters[1].wait(20s) == Exit{.code = 0, .signal = 0});
  CHECK(std::chrono::steady_clock::now() - from < 2s + 2s);
  CHECK(line.waiters[2].wait(20s) == Exit{.code = 0, .signal = 0});
  CHECK(line.ran() == std::vector<int>{1, 2});
}

TEST_CASE("queue: connections cut, scripts and queue flushed in the middle of a drain")
{
  struct Blow { std::string why; std::vector<std::string> words; };
  for (const Blow& blow : {Blow{"pubsub cut", {"CLIENT", "KILL", "TYPE", "pubsub"}},
                           Blow{"connections cut", {"CLIENT", "KILL", "TYPE", "normal"}},
                           Blow{"scripts flushed", {"SCRIPT", "FLUSH"}}, Blow{"queue lost", {"DEL", queue}}}) {
    CAPTURE(blow.why);
    Line line;
    const Witness witness;
    Process holder = line.hold("5s");
    for (int i = 0; i < 12; ++i) {
      line.come("5s", "; " + witness.short_job("w" + std::to_string(i), 30).back());
    }
    line.all_listen();
    holder.signal(SIGTERM);
    wait_until([&] { return line.ran().size() >= 4; }, "the drain is under way");
    line.server.command(blow.words);
    for (Process& waiter : line.waiters) {
      CHECK(waiter.wait(60s) == Exit{.code = 0, .signal = 0});
    }
    std::vector<int> ran = line.ran();
    std::sort(ran.begin(), ran.end());
    CHECK(ran == first_numbers(12));
    CHECK(overlap(witness.jobs()) == "");
  }
}

TEST_CASE("queue: the server restarted with its file in the middle of a drain")
{
  Line line({.args = {"--appendonly", "yes", "--appendfsync", "always"}});
  const Witness witness;
  Process holder = line.hold("5s");
  for (int i = 0; i < 12; ++i) {
    line.come("5s", "; " + witness.short_job("w" + std::to_string(i), 60).back());
  }
  line.all_listen();
  holder.signal(SIGTERM);
  wait_until([&] { return line.ran().size() >= 4; }, "the drain is under way");
  line.server.kill_hard();
  line.server.restart();
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait(60s) == Exit{.code = 0, .signal = 0});
  }
  std::vector<int> ran = line.ran();
  std::sort(ran.begin(), ran.end());
  CHECK(ran == first_numbers(12));
  CHECK(overlap(witness.jobs()) == "");
}

TEST_CASE("queue: twenty that lose patience leave in time, and nothing of theirs stays")
{
  Line line;
  Process holder = line.hold("30s");
  std::vector<Process> waiters;
  const auto from = std::chrono::steady_clock::now();
  for (int i = 1; i <= 20; ++i) {
    waiters.emplace_back(rlock_argv({"run", "-S", line.server.url(), "-k", "k", "-w",
                                     std::to_string(i * 200) + "ms", "--", "true"}));
  }
  for (int i = 1; i <= 20; ++i) {
    CHECK(waiters[static_cast<std::size_t>(i - 1)].wait(20s) == Exit{.code = 75, .signal = 0});
    CHECK(std::chrono::steady_clock::now() - from >= i * 200ms);
  }
  CHECK(in_line(line.server) == 0);
  CHECK(as_int(line.server.command({"HLEN", "rlock:waiters:{k}"})) == 0);
}

TEST_CASE("queue: --min-hold keeps the lock by its ttl, and the line knows when it ends")
{
  Line line;
  Process holder(rlock_argv({"run", "-S", line.server.url(), "-k", "k", "--min-hold", "1500ms", "--", "true"}));
  CHECK(holder.wait() == Exit{.code = 0, .signal = 0});
  const std::int64_t left = as_int(line.server.command({"PTTL", "k"}));
  CHECK(left > 500);
  CHECK(left <= 1500);
  CHECK(run_rlock({"run", "-S", line.server.url(), "-k", "k", "-n", "--", "true"}).code == 75);
  line.come();
  CHECK(line.waiters[0].wait(5s) == Exit{.code = 0, .signal = 0});
}
