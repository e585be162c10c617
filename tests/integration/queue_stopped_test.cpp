// SPDX-License-Identifier: Apache-2.0
// Waiters that are stopped, and come back when it is no longer their turn.
#include "support/line.h"
#include "support/temp_dir.h"
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
    std::ifstream file("/proc/" + std::to_string(process.pid()) + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    return stat.find(") T ") != std::string::npos;
  };
  wait_until(is_stopped, "it stands still");
}

// Keeps a job running until it is opened.
class Gate {
 public:
  [[nodiscard]] std::string work() const { return "; until [ -e " + m_file.string() + " ]; do sleep 0.02; done"; }
  void open() const { std::ofstream{m_file}; }

 private:
  std::filesystem::path m_file = make_temp_dir("gate") / "open";
};

// Waits until the lock was handed to the waiter with that number, stopped as it is.
void send_away(const Process& holder, const Line& line, std::size_t next)
{
  holder.signal(SIGTERM);
  wait_until([&] { return line.holder() == line.waiters[next].pid(); }, "it is its turn");
}

}  // namespace

TEST_CASE("stopped waiter: it is passed over, and is first again when it comes back")
{
  Line line;
  const Gate gate;
  Process holder = line.hold("30s");
  line.come();
  line.come("30s", gate.work());
  line.come();
  line.all_listen();
  stop(line.waiters[0]);
  send_away(holder, line, 0);
  wait_until([&] { return line.ran() == std::vector{1}; }, "the one behind it runs", 6s);

  line.waiters[0].signal(SIGCONT);
  wait_until([&] { return line.in_line() == 2; }, "it stands in line again");
  gate.open();
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait(20s) == Exit{.code = 0, .signal = 0});
  }
  CHECK(line.ran() == std::vector{1, 0, 2});
}

TEST_CASE("stopped waiter: back before its claim is over it runs in its turn")
{
  Line line;
  Process holder = line.hold("30s");
  line.come();
  line.come();
  line.all_listen();
  stop(line.waiters[0]);
  send_away(holder, line, 0);
  line.waiters[0].signal(SIGCONT);
  for (Process& waiter : line.waiters) {
    CHECK(waiter.wait(20s) == Exit{.code = 0, .signal = 0});
  }
  CHECK(line.ran() == numbers_below(2));
}

TEST_CASE("stopped waiter: back when its time is over it starts nothing and takes nothing")
{
  Line line;
  const Gate gate;
  Process holder = line.hold("30s");
  line.come("30s", "", {"-w", "1"});
  line.come("30s", gate.work());
  line.all_listen();
  stop(line.waiters[0]);
  send_away(holder, line, 0);
  wait_until([&] { return line.ran() == std::vector{1}; }, "the one behind it runs", 6s);

  line.waiters[0].signal(SIGCONT);
  CHECK(line.waiters[0].wait() == Exit{.code = 75, .signal = 0});
  CHECK(line.in_line() == 0);
  CHECK(line.holder() == line.waiters[1].pid());
  gate.open();
  CHECK(line.waiters[1].wait() == Exit{.code = 0, .signal = 0});
  CHECK(line.ran() == std::vector{1});
}

TEST_CASE("stopped waiter: killed with the lock in its hands, it does not block the next")
{
  Line line;
  Process holder = line.hold("30s");
  line.come();
  line.come();
  line.all_listen();
  stop(line.waiters[0]);
  send_away(holder, line, 0);
  line.waiters[0].signal(SIGKILL);
  CHECK(line.waiters[1].wait(6s) == Exit{.code = 0, .signal = 0});
  CHECK(line.ran() == std::vector{1});
}
