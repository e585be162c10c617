// SPDX-License-Identifier: Apache-2.0
#include "fault/many_runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace rlock::test {
namespace {

constexpr unsigned at_a_time = 16;
constexpr int tries_for_complete_run = 5;  // on a machine that is too busy for the short times of these tests
constexpr int most_calls = 400;            // a run that never ends without a fault is a defect of the test

RunResult run_one(const Series& series, int number)
{
  try {
    return series.run(number);
  } catch (const std::exception& error) {
    return {.injected = true, .incomplete = "", .wrong = {std::string("exception: ") + error.what()}};
  }
}

// The runs that are left. Several threads may work on one series, because its runs do not depend on each other.
class Runs {
 public:
  explicit Runs(const std::vector<Series>& series) : m_series(series), m_progress(series.size()) {}

  void work()
  {
    while (const auto run = next()) {
      const RunResult result = try_to_complete(*run);
      if (is_complete(result)) {
        note(*run, result);
      } else {
        postpone(*run);
      }
    }
  }

  // When the threads are over: the postponed runs one by one, which is less work for the machine at a time.
  void work_on_postponed()
  {
    for (const Run& run : m_postponed) {
      note(run, try_to_complete(run));
    }
  }

  Summary summary;

 private:
  struct Run {
    std::size_t series;
    int number;
  };
  struct Progress {
    int started = 0;
    bool is_over = false;
  };

  // The series with the fewest runs.
  std::optional<Run> next()
  {
    const std::lock_guard guard(m_mutex);
    std::optional<std::size_t> least;
    for (std::size_t i = 0; i < m_progress.size(); ++i) {
      if (!m_progress[i].is_over && (!least || m_progress[i].started < m_progress[*least].started)) {
        least = i;
      }
    }
    return least ? std::optional(Run{*least, ++m_progress[*least].started}) : std::nullopt;
  }

  static bool is_complete(const RunResult& result) { return result.injected || result.incomplete.empty(); }

  RunResult try_to_complete(const Run& run)
  {
    RunResult result = run_one(m_series[run.series], run.number);
    for (int i = 1; i < tries_for_complete_run && !is_complete(result); ++i) {
      result = run_one(m_series[run.series], run.number);
    }
    return result;
  }

  // Without an injected fault the series is over.
  void postpone(const Run& run)
  {
    const std::lock_guard guard(m_mutex);
    m_postponed.push_back(run);
    m_progress[run.series].is_over = true;
  }

  void note(const Run& run, const RunResult& result)
  {
    const std::lock_guard guard(m_mutex);
    const std::string name = m_series[run.series].name + ", call " + std::to_string(run.number);
    summary.runs += result.injected ? 1 : 0;
    for (const std::string& what : result.wrong) {
      summary.wrong.push_back(name + ": " + what);
    }
    if (!is_complete(result)) {
      summary.wrong.push_back(name + ": nothing failed, but " + result.incomplete);
    }
    if (run.number == most_calls) {
      summary.wrong.push_back(name + ": the series has no end");
    }
    m_progress[run.series].is_over |= !result.injected || run.number >= most_calls;
  }

  const std::vector<Series>& m_series;
  std::mutex m_mutex;
  std::vector<Progress> m_progress;  // of the series; guarded by m_mutex, as the rest while there are threads
  std::vector<Run> m_postponed;
};

std::vector<Series> selected(const std::vector<Series>& all)
{
  const char* part = std::getenv("RLOCK_TEST_FAULT");
  std::vector<Series> some;
  std::ranges::copy_if(all, std::back_inserter(some), [&](const Series& series) {
    return part == nullptr || series.name.find(part) != std::string::npos;
  });
  return some;
}

}  // namespace

Summary run_all(const std::vector<Series>& series)
{
  const std::vector<Series> chosen = selected(series);
  Runs runs(chosen);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < at_a_time; ++i) {
    threads.emplace_back([&] { runs.work(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  runs.work_on_postponed();
  return runs.summary;
}

void expect_nothing_wrong(const Summary& summary, int least_runs)
{
  for (const std::string& wrong : summary.wrong) {
    FAIL_CHECK(wrong);
  }
  if (std::getenv("RLOCK_TEST_FAULT") == nullptr) {
    CHECK(summary.runs >= least_runs);
  }
  MESSAGE(summary.runs << " runs with a fault");
}

}  // namespace rlock::test
