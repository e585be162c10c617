// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/quiet_listener.h"
#include "support/seed.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

namespace {

const char* program = "";
unsigned cases_run = 0;

// Keeps the files of a failed test case and prints the command that repeats it.
class FailureReporter final : public rlock::test::QuietListener {
 public:
  explicit FailureReporter(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& test_case) override { m_name = test_case.m_name; }

  void test_case_end(const doctest::CurrentTestCaseStats& stats) override
  {
    if (stats.testCaseSuccess) {
      rlock::test::remove_temp_dirs();
      return;
    }
    if (const auto kept = rlock::test::keep_temp_dirs(); !kept.empty()) {
      std::cout << "kept: " << kept.string() << '\n';
    }
    const char* topology = std::getenv("RLOCK_TEST_ON");
    std::cout << "repeat: RLOCK_TEST_SEED=" << rlock::test::seed() << ' '  //
              << (topology == nullptr ? "" : "RLOCK_TEST_ON=" + std::string(topology) + ' ') << program << " -tc='"
              << m_name << "'\n";
  }

  void test_run_end(const doctest::TestRunStats& stats) override { cases_run = stats.numTestCasesPassingFilters; }

 private:
  const char* m_name = "";
};
DOCTEST_REGISTER_LISTENER("failure", 1, FailureReporter);

}  // namespace

int main(int argc, char** argv)
{
  // A write to a server that a test has killed must be an error, not the end of this process.
  std::signal(SIGPIPE, SIG_IGN);
  program = argv[0];
  for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc))) {
    if (argument.starts_with("--on=")) {  // from ctest; doctest ignores it
      ::setenv("RLOCK_TEST_ON", argument.substr(5).data(), 1);
    }
  }
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (!context.shouldExit() && cases_run == 0) {  // ctest splits a title with a semicolon into two that match no case
    std::cout << "no test case has this title\n";
    return 1;
  }
  return result;
}
