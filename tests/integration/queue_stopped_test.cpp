// SPDX-License-Identifier: Apache-2.0
// Waiters that are stopped, and continue when their turn is over.
#include "support/queue_fixture.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

void stop(const Process& process)
{
  process.signal(SIGSTOP);
  const auto is_stopped = [&] {
    return text_of("/proc/" + std::to_string(process.pid()) + "/stat").find(") T ") != std::string::npos;
  };
  wait_until(is_stopped, "it stands still");
}

// Keeps a job running until open().
class Gate {
 public:
  [[nodiscard]] std::string work() const { return "; until [ -e " + m_file.string() + " ]; do sleep 0.02; done"; }
  void open() const { std::ofstream{m_file}; }

 private:
  std::filesystem::path m_file = make_temp_dir("gate") / "open";
};

// Waits until the lock was handed to the waiter with that number, although it is stopped.
void send_away(const Process& holder, const QueueFixture& queue, std::size_t next)
{
  holder.signal(SIGTERM);
  wait_until([&] { return queue.holder() == queue.waiters[next].pid(); }, "it is its turn");
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("stopped waiter: it is passed over, and is first again when it comes back")
{
  QueueFixture queue;
  const Gate gate;
  Process holder = queue.hold("30s");
  queue.add_waiter();
  queue.add_waiter("30s", gate.work());
  queue.add_waiter();
  queue.await_subscriptions();
  stop(queue.waiters[0]);
  send_away(holder, queue, 0);
  wait_until([&] { return queue.started_jobs() == std::vector{1}; }, "the one behind it runs", 6s);

  queue.waiters[0].signal(SIGCONT);
  wait_until([&] { return queue.queue_length() == 2; }, "it is queued again");
  gate.open();
  for (Process& waiter : queue.waiters) {
    CHECK(waiter.wait(20s) == Exit{.code = 0, .signal = 0});
  }
  CHECK(queue.started_jobs() == std::vector{1, 0, 2});
}

TEST_CASE("stopped waiter: back before its claim is over it runs in its turn")
{
  QueueFixture queue;
  Process holder = queue.hold("30s");
  queue.add_waiter();
  queue.add_waiter();
  queue.await_subscriptions();
  stop(queue.waiters[0]);
  send_away(holder, queue, 0);
  queue.waiters[0].signal(SIGCONT);
  for (Process& waiter : queue.waiters) {
    CHECK(waiter.wait(20s) == Exit{.code = 0, .signal = 0});
  }
  CHECK(queue.started_jobs() == numbers_below(2));
}

TEST_CASE("stopped waiter: back when its time is over it starts nothing and takes nothing")
{
  QueueFixture queue;
  const Gate gate;
  Process holder = queue.hold("30s");
  queue.add_waiter("30s", "", {"-w", "1"});
  queue.add_waiter("30s", gate.work());
  queue.await_subscriptions();
  stop(queue.waiters[0]);
  send_away(holder, queue, 0);
  wait_until([&] { return queue.started_jobs() == std::vector{1}; }, "the one behind it runs", 6s);

  queue.waiters[0].signal(SIGCONT);
  CHECK(queue.waiters[0].wait() == Exit{.code = 75, .signal = 0});
  CHECK(queue.queue_length() == 0);
  CHECK(queue.holder() == queue.waiters[1].pid());
  gate.open();
  CHECK(queue.waiters[1].wait() == Exit{.code = 0, .signal = 0});
  CHECK(queue.started_jobs() == std::vector{1});
}

TEST_CASE("stopped waiter: killed with the lock in its hands, it does not block the next")
{
  QueueFixture queue;
  Process holder = queue.hold("30s");
  queue.add_waiter();
  queue.add_waiter();
  queue.await_subscriptions();
  stop(queue.waiters[0]);
  send_away(holder, queue, 0);
  queue.waiters[0].signal(SIGKILL);
  CHECK(queue.waiters[1].wait(6s) == Exit{.code = 0, .signal = 0});
  CHECK(queue.started_jobs() == std::vector{1});
}

TEST_SUITE_END();
