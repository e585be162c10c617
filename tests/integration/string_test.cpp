// SPDX-License-Identifier: Apache-2.0
// The string lock among clients that poll: SET NX PX, again and again, and compare and DEL.
#include "support/line.h"
#include "support/wait_until.h"
#include "support/witness.h"

#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

const Exit well{.code = 0, .signal = 0};

// As redsync's, redis-py's or Spring's: takes it when it finds it free, holds it for a moment, and beats meanwhile.
class Poller {
 public:
  Poller(const RedisServer& server, std::filesystem::path beats)
      : m_server(server), m_beats(std::move(beats)), m_thread([this] { loop(); })
  {
  }
  ~Poller() { stop(); }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void stop()
  {
    m_over = true;
    if (m_thread.joinable()) {
      m_thread.join();
    }
  }
  [[nodiscard]] int turns() const { return m_turns; }

 private:
  void loop()
  {
    while (!m_over) {
      const std::string token = "poller" + std::to_string(m_turns);
      if (m_server.command({"SET", "k", token, "NX", "PX", "10000"}).kind != Reply::Kind::nil) {
        hold(token);
      }
      std::this_thread::sleep_for(30ms);
    }
  }

  void hold(const std::string& token)
  {
    std::ofstream file(m_beats, std::ios::app);
    for (int i = 0; i < 5; ++i) {
      file << token << " " << now_ns() << std::endl;
      std::this_thread::sleep_for(5ms);
    }
    m_server.command({"EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end",
                      "1", "k", token});
    ++m_turns;
  }

  const RedisServer& m_server;
  std::filesystem::path m_beats;
  std::atomic<bool> m_over = false;
  std::atomic<int> m_turns = 0;
  std::thread m_thread;  // last: it uses the others
};

Process start(const Line& line, std::vector<std::string> options, const std::vector<std::string>& job)
{
  options.insert(options.begin(), {"--format", "string"});
  options.emplace_back("--");
  options.insert(options.end(), job.begin(), job.end());
  return Process(line.rlock("run", std::move(options)));
}

}  // namespace

TEST_CASE("string: waits for a client that polls, and is waited for by it")
{
  const Line line;
  const Witness witness;
  Poller poller(line.server, witness.file());
  wait_until([&] { return poller.turns() >= 1; }, "the poller has had a turn");
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    std::vector<Process> ours;
    for (const char* name : {"a", "b"}) {
      ours.push_back(start(line, {}, witness.short_job(name + std::to_string(i), 50)));
    }
    for (Process& one : ours) {
      CHECK(one.wait(20s) == well);
    }
    const int before = poller.turns();
    wait_until([&] { return poller.turns() > before; }, "the poller has its turn again");
  }
  poller.stop();
  const auto jobs = witness.jobs();
  CHECK(overlap(jobs) == "");
  CHECK(jobs.size() >= 8 + 4);
}

TEST_CASE("string: one that never expires is waited for until it is deleted")
{
  const Line line;
  line.server.command({"SETNX", "k", "1"});
  Process ours = start(line, {}, {"true"});
  wait_until([&] { return as_int(line.server.command({"ZCARD", "rlock:queue-string:{k}"})) == 1; }, "ours waits");
  line.server.command({"DEL", "k"});
  CHECK(ours.wait(5s) == well);  // it asks ten times a second, for nobody will tell it
}

TEST_CASE("string: those of ours come as they came, also when the holder is killed")
{
  const Line line;
  const Witness witness;
  Process victim = start(line, {"--ttl", "1s"}, witness.stubborn_tree("victim"));
  wait_until([&] { return witness.tree_beats("victim"); }, "the job's tree runs");
  std::vector<Process> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.push_back(start(line, {"--ttl", "1s"}, witness.short_job("w" + std::to_string(i), 40)));
    wait_until(
        [&] {
          return as_int(line.server.command({"ZCARD", "rlock:queue-string:{k}"})) == i + 1;
        },
        "one more waits");
  }
  victim.signal(SIGKILL);
  for (Process& waiter : waiters) {
    CHECK(waiter.wait(20s) == well);
  }
  const auto jobs = witness.jobs();
  CHECK(overlap(jobs) == "");
  for (int i = 0; i + 1 < 4; ++i) {
    CHECK(jobs.at("w" + std::to_string(i)).first_ns < jobs.at("w" + std::to_string(i + 1)).first_ns);
  }
}

TEST_CASE("string: a name that a JVM locks is refused before anything is written")
{
  const Line line;
  line.server.command({"HSET", "k", "uuid:1", "1"});
  line.server.command({"PEXPIRE", "k", "20000"});
  Process ours = start(line, {}, {"true"});
  CHECK(ours.wait() == Exit{.code = 78, .signal = 0});
  CHECK(ours.err().find("holds a lock, not a lock of this kind") != std::string::npos);
  CHECK(as_int(line.server.command({"DBSIZE"})) == 1);
}
