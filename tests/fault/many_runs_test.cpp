// SPDX-License-Identifier: Apache-2.0
// run_all, with runs that need no server.
#include "fault/many_runs.h"
#include "support/test.h"

#include <atomic>
#include <thread>

using namespace rlock::test;

namespace {

constexpr int calls = 30;  // of each run

// Not on a busy machine: a run tells nothing while more than two go on at a time.
class BusyMachine {
 public:
  FaultResult run(int number)
  {
    const bool is_too_busy = ++m_running > 2;
    std::this_thread::sleep_for(2ms);
    --m_running;
    return {.injected = number <= calls, .incomplete = "", .wrong = {}, .too_slow = is_too_busy ? "no time" : ""};
  }

 private:
  std::atomic<int> m_running = 0;
};

}  // namespace

TEST_CASE("many runs: a run that the machine is too slow for is repeated with fewer others, and its series goes on")
{
  BusyMachine machine;
  const auto run = [&](int number) { return machine.run(number); };
  const Summary summary = run_all({{.name = "a", .run = run}, {.name = "b", .run = run}});
  CHECK(summary.wrong.empty());
  CHECK(summary.runs == 2 * calls);
}

TEST_CASE("many runs: a run that the machine is always too slow for is told, and so is what is wrong with it")
{
  const auto too_slow = [](int number) {
    const bool second = number == 2;
    return FaultResult{.injected = number < 3, .incomplete = "", .wrong = {}, .too_slow = second ? "no time" : ""};
  };
  CHECK(run_all({{.name = "a", .run = too_slow}}).wrong ==
        std::vector<std::string>{"a, call 2: the machine is too slow: no time"});
  const auto wrong = [](int number) {
    const bool first = number == 1;
    return FaultResult{.injected = first,
                       .incomplete = "",
                       .wrong = first ? std::vector<std::string>{"an overlap"} : std::vector<std::string>{},
                       .too_slow = first ? "no time" : ""};
  };
  CHECK(run_all({{.name = "a", .run = wrong}}).wrong == std::vector<std::string>{"a, call 1: an overlap"});
}

TEST_CASE("many runs: a run that is not complete although nothing failed is repeated, and told when it stays so")
{
  std::atomic<int> tries = 0;
  const auto later = [&](int number) {
    return FaultResult{.injected = number == 1, .incomplete = number == 1 || ++tries > 3 ? "" : "busy", .wrong = {}};
  };
  const auto never = [](int number) {
    return FaultResult{.injected = number == 1, .incomplete = number == 1 ? "" : "busy", .wrong = {}};
  };
  const Summary summary = run_all({{.name = "later", .run = later}});
  CHECK(summary.runs == 1);
  const std::vector<std::string> told = run_all({{.name = "never", .run = never}}).wrong;
  REQUIRE_FALSE(told.empty());
  CHECK(told.front().ends_with("nothing failed, but busy"));
}
