// SPDX-License-Identifier: Apache-2.0
// The string lock beside clients that poll: SET NX PX, again and again, and compare and DEL.
#include "support/activity_log.h"
#include "support/integration.h"
#include "support/queue_fixture.h"

#include <atomic>

using namespace rlock::test;

namespace {

// A client as redsync, redis-py or Spring: takes a free lock, holds it for a moment, and logs its activity.
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
  std::thread m_thread;  // last, because it uses the others
};

Process start(const QueueFixture& queue, std::vector<std::string> options, const std::vector<std::string>& job)
{
  return queue.start(joined({"--format", "string"}, options), job);
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("string: waits for a client that polls, and is waited for by it")
{
  skip_on_databases("clients that are not rlock use Redis");
  const QueueFixture queue;
  const ActivityLog activity;
  Poller poller(queue.server, activity.file());
  wait_until([&] { return poller.turns() >= 1; }, "the poller has had a turn");
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    std::vector<Process> waiters;
    for (const char* name : {"a", "b"}) {
      waiters.push_back(start(queue, {}, activity.short_job(name + std::to_string(i), 50)));
    }
    expect_ends(waiters, 20s);
    const int before = poller.turns();
    wait_until([&] { return poller.turns() > before; }, "the poller has its turn again");
  }
  poller.stop();
  const auto jobs = activity.jobs();
  CHECK(overlap(jobs) == "");
  CHECK(jobs.size() >= 8 + 4);
}

QUEUE_CASE("string: a lock without a ttl is waited for until it is deleted")
{
  queue.server.command({"SETNX", "k", "1"});
  Process waiter = start(queue, {}, {"true"});
  wait_until([&] { return as_int(queue.server.command({"ZCARD", "rlock:queue-string:{k}"})) == 1; }, "waiter waits");
  queue.server.command({"DEL", "k"});
  CHECK(waiter.wait(5s) == success);  // it polls ten times a second, because there is no message
}

QUEUE_CASE("string: a name that a JVM locks is refused before anything is written")
{
  queue.server.command({"HSET", "k", "uuid:1", "1"});
  queue.server.command({"PEXPIRE", "k", "20000"});
  Process waiter = start(queue, {}, {"true"});
  expect_end(waiter, exited(78), {err_has("holds a lock, not a lock of this kind")});
  CHECK(as_int(queue.server.command({"DBSIZE"})) == 1);
}

TEST_SUITE_END();
