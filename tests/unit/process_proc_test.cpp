// SPDX-License-Identifier: Apache-2.0
#include "process/proc.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

std::string show(const std::optional<ProcessInfo>& process)
{
  if (!process) {
    return "none";
  }
  return std::to_string(process->pid) + " " + process->state + " " + std::to_string(process->parent) + " " +
         std::to_string(process->group) + " " + std::to_string(process->session);
}

}  // namespace

TEST_CASE("proc: a line of /proc/PID/stat")
{
  struct Row {
    const char* why;
    const char* line;
    const char* expect;
  };
  const Row rows[] = {
      {"plain", "42 (sleep) S 7 42 5 34816 42 4194304 97 0", "42 S 7 42 5"},
      {"a zombie", "42 (sleep) Z 7 42 5 0 -1 4194304", "42 Z 7 42 5"},
      {"of the kernel", "2 (kthreadd) S 0 0 0 0 -1 2129984", "2 S 0 0 0"},
      {"a name that lies", "42 (a) R 1 1 1) S 7 42 5 0 -1", "42 S 7 42 5"},
      {"a name of two lines", "42 (a\nb) S 7 42 5 0 -1", "42 S 7 42 5"},
      {"cut short", "42 (sleep) S 7 42", "none"},
      {"no name", "42 sleep S 7 42 5", "none"},
      {"nothing", "", "none"},
      {"ends after the name", "42 (sleep) ", "none"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(show(parse_stat(row.line)) == row.expect);
  }
}
