// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/seed.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <csignal>
#include <iostream>

namespace {

const char* program = "";

// What a failing test leaves to whoever looks into it: its files, and the command that repeats it.
class JobOutcome final : public doctest::IReporter {
 public:
  explicit JobOutcome(const doctest::ContextOptions&) {}

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
    std::cout << "repeat: RLOCK_TEST_SEED=" << rlock::test::seed() << ' '  //
              << program << " -tc='" << m_name << "'\n";
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  const char* m_name = "";
};
DOCTEST_REGISTER_LISTENER("aftermath", 1, JobOutcome);

}  // namespace

int main(int argc, char** argv)
{
  // A server that a test has killed must cost that test an error, not the whole run its life.
  std::signal(SIGPIPE, SIG_IGN);
  program = argv[0];
  return doctest::Context(argc, argv).run();
}
