// SPDX-License-Identifier: Apache-2.0
// First come, first served, past the dead, whatever happens to messages, connections and the queue itself.
#include "support/line.h"
#include "support/wait_until.h"
#include "support/witness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

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
  CHECK(line.ran() == numbers_below(200));
  CHECK(line.in_line() == 0);
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
    // A job that takes a busy machine 200 ms is watched, which costs one more of each: some may.
    const int slow = crowd / 2;
    CHECK(calls(line.server, "evalsha") <= 3 * crowd + 4 + slow);
    CHECK(arrived <= crowd + 3);
    CHECK(calls(line.server, "subscribe") <= crowd + 2 + slow);
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
  std::vector<int> expected = numbers_below(30);
  std::erase_if(expected, [](int number) { return number % 3 == 0 || number == 10; });
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
  struct Blow {
    std::string why;
    std::vector<std::string> words;
  };
  for (const Blow& blow :
       {Blow{"pubsub cut", {"CLIENT", "KILL", "TYPE", "pubsub"}},
        Blow{"connections cut", {"CLIENT", "KILL", "TYPE", "normal"}}, Blow{"scripts flushed", {"SCRIPT", "FLUSH"}},
        Blow{"queue lost", {"DEL", "rlock:queue:{k}"}}}) {
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
    const Reply struck = line.server.command(blow.words);
    CAPTURE(show(struck));
    CHECK((struck.text == "OK" || struck.integer > 0));  // it hit something
    for (Process& waiter : line.waiters) {
      CHECK(waiter.wait(60s) == Exit{.code = 0, .signal = 0});
    }
    std::vector<int> ran = line.ran();
    std::sort(ran.begin(), ran.end());
    CHECK(ran == numbers_below(12));
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
  CHECK(ran == numbers_below(12));
  CHECK(overlap(witness.jobs()) == "");
}

TEST_CASE("queue: twenty that lose patience leave in time, and nothing of theirs stays")
{
  Line line;
  Process holder = line.hold("30s");
  std::vector<Process> waiters;
  const auto from = std::chrono::steady_clock::now();
  for (int i = 1; i <= 20; ++i) {
    waiters.emplace_back(line.rlock("run", {"-w", std::to_string(i * 200) + "ms", "--", "true"}));
  }
  for (int i = 1; i <= 20; ++i) {
    CAPTURE(i);
    CHECK(waiters[static_cast<std::size_t>(i - 1)].wait(20s) == Exit{.code = 75, .signal = 0});
    const auto waited = std::chrono::steady_clock::now() - from;
    CHECK(waited >= i * 200ms);
    CHECK(waited < i * 200ms + 3s);  // a busy machine's; bench tells how late it really is
  }
  CHECK(line.in_line() == 0);
  const auto notes = as_texts(line.server.command({"HKEYS", "rlock:waiters:{k}"}));
  CHECK(notes == std::vector<std::string>{"#gone"});  // for a request that is sent twice; it has a ttl
  CHECK(as_int(line.server.command({"PTTL", "rlock:waiters:{k}"})) > 0);
}

TEST_CASE("queue: --min-hold keeps the lock by its ttl, and the line knows when it ends")
{
  Line line;
  Process holder(line.rlock("run", {"--min-hold", "1500ms", "--", "true"}));
  CHECK(holder.wait() == Exit{.code = 0, .signal = 0});
  const std::int64_t left = as_int(line.server.command({"PTTL", "k"}));
  CHECK(left > 500);
  CHECK(left <= 1500);
  CHECK(Process(line.rlock("run", {"-n", "--", "true"})).wait() == Exit{.code = 75, .signal = 0});
  line.come();
  CHECK(line.waiters[0].wait(5s) == Exit{.code = 0, .signal = 0});
}
