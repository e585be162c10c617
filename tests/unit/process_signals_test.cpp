// SPDX-License-Identifier: Apache-2.0
#include "process/signals.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("signals: names and numbers")
{
  struct Row {
    const char* name;
    int expect;
  };
  const Row rows[] = {
      {"TERM", SIGTERM},  {"SIGTERM", SIGTERM},
      {"term", SIGTERM},  {"15", 15},
      {"9", SIGKILL},     {"USR1", SIGUSR1},
      {"POLL", SIGIO},    {"CLD", SIGCHLD},
      {"64", SIGRTMAX},   {"0", 0},
      {"65", 0},          {"-9", 0},
      {"9x", 0},          {"", 0},
      {"SIG", 0},         {"SIGSIGTERM", 0},
      {"NONE", 0},        {" TERM", 0},
      {"99999999999", 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(signal_number(row.name).value_or(0) == row.expect);
  }
}

TEST_CASE("signals: every name that is shown is read back")
{
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    CAPTURE(signal);
    CHECK(signal_number(signal_name(signal)) == signal);
  }
  CHECK(signal_name(SIGABRT) == "ABRT");
  CHECK(signal_name(SIGRTMAX) == std::to_string(SIGRTMAX));
}
