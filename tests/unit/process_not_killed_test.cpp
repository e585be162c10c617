// SPDX-License-Identifier: Apache-2.0
// Which processes are named that KILL has not ended.
#include "process/not_killed.h"
#include "support/test.h"

#include <cstddef>

using namespace rlock::test;

namespace {

std::vector<LeftProcess> processes(pid_t first, int count)
{
  std::vector<LeftProcess> left;
  for (int i = 0; i < count; ++i) {
    left.push_back({.pid = first + i, .refused = true, .state = 'S'});
  }
  return left;
}

}  // namespace

TEST_CASE("not killed: each process is named once a minute")
{
  NotKilledReports reports;
  const Instant now{1h};
  CHECK(reports.due(processes(100, 3), now).size() == 3);
  CHECK(reports.due(processes(100, 3), now + 59s).empty());
  CHECK(reports.due(processes(100, 4), now + 59s).size() == 1);
  CHECK(reports.due(processes(100, 3), now + 60s).size() == 3);
}

TEST_CASE("not killed: a process that starts others without end does not fill the log")
{
  NotKilledReports reports;
  const Instant now{1h};
  std::size_t named = 0;
  for (int second = 0; second < 60; ++second) {
    named += reports.due(processes(1000 + 10 * second, 10), now + std::chrono::seconds(second)).size();
  }
  CHECK(named == static_cast<std::size_t>(most_named));
}
