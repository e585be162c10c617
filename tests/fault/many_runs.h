// SPDX-License-Identifier: Apache-2.0
// Runs one scenario with the 1st, the 2nd, the 3rd … call failing, until a run makes so few calls that nothing failed.
// Most of a run is waiting, so many runs go on at the same time. RLOCK_TEST_FAULT, a part of
// the name of a series as a failure prints it, selects some of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace rlock::test {

struct FaultResult {
  bool injected;                   // a call has failed
  std::string incomplete;          // what did not go well; empty: all did
  std::vector<std::string> wrong;  // what rlock must never do
  std::string too_slow = {};       // what the machine did not do in time, so that the run tells nothing; it is repeated
};

// The calls of one series fail in one way.
struct Series {
  std::string name;                            // without the number of the call
  std::function<FaultResult(int number)> run;  // may be called from any thread
};

struct Summary {
  int runs = 0;                    // in which a call has failed
  std::vector<std::string> wrong;  // with the name of the run
};

Summary run_all(const std::vector<Series>& series);

// For series whose clients are threads of the test: each forks a guardian. The address sanitizer holds its allocator during fork(2)
// since clang 17 and gcc 14; before, a guardian waits for ever for another thread of the test that does not exist in it.
void skip_where_forked_threads_hang();

// Fails the test case for each wrong thing, and when fewer than `least_runs` had a fault.
void expect_nothing_wrong(const Summary& summary, int least_runs);

}  // namespace rlock::test
