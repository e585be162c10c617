// SPDX-License-Identifier: Apache-2.0
#include "fault/many_runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "support/skip.h"

namespace rlock::test {
namespace {

constexpr int most_at_a_time = 16;
constexpr int tries_alone = 5;         // of a run that the machine is too slow for, while no other run goes on
constexpr int successes_for_more = 4;  // after so many one run more goes on at a time
constexpr int most_calls = 400;        // a run that never ends without a fault is a defect of the test

FaultResult run_one(const Series& series, int number)
{
  try {
    return series.run(number);
  } catch (const std::exception& error) {
    return {.injected = true, .incomplete = "", .wrong = {std::string("exception: ") + error.what()}};
  }
}

bool is_complete(const FaultResult& result)
{
  return !result.wrong.empty() || (result.too_slow.empty() && (result.injected || result.incomplete.empty()));
}

// The runs that are left. Several threads may work on one series, because its runs do not depend on each other. A run that is not
// complete is repeated, and fewer go on at a time, because the machine is too busy for the short times of these tests.
class Runs {
 public:
  explicit Runs(const std::vector<Series>& series) : m_series(series), m_progress(series.size()) {}

  void work()
  {
    while (const auto run = next()) {
      over(*run, run_one(m_series[run->series], run->number));
    }
  }

  Summary summary;

 private:
  struct Run {
    std::size_t series;
    int number;
    int failed_alone = 0;
  };
  struct Progress {
    int started = 0;
    bool is_over = false;
  };

  // Waits for its turn. nullopt: none is left for this thread.
  std::optional<Run> next()
  {
    std::unique_lock lock(m_mutex);
    m_has_room.wait(lock, [&] { return m_going_on < m_at_a_time; });
    const std::optional<Run> run = take();
    m_going_on += run ? 1 : 0;
    return run;
  }

  // One that is repeated, or one of the series with the fewest runs.
  std::optional<Run> take()
  {
    if (!m_repeated.empty()) {
      const Run run = m_repeated.back();
      m_repeated.pop_back();
      return run;
    }
    std::optional<std::size_t> least;
    for (std::size_t i = 0; i < m_progress.size(); ++i) {
      if (!m_progress[i].is_over && (!least || m_progress[i].started < m_progress[*least].started)) {
        least = i;
      }
    }
    return least ? std::optional(Run{*least, ++m_progress[*least].started}) : std::nullopt;
  }

  void over(Run run, const FaultResult& result)
  {
    const std::lock_guard guard(m_mutex);
    if (is_complete(result)) {
      m_at_a_time = std::min(m_at_a_time + (++m_successes % successes_for_more == 0 ? 1 : 0), most_at_a_time);
      note(run, result);
    } else if (run.failed_alone += m_going_on == 1 ? 1 : 0; run.failed_alone < tries_alone) {
      m_at_a_time = std::max(m_at_a_time * 3 / 4, 1);
      m_repeated.push_back(run);
    } else {
      note(run, result);
    }
    --m_going_on;
    m_has_room.notify_all();
  }

  void note(const Run& run, const FaultResult& result)
  {
    const std::string name = m_series[run.series].name + ", call " + std::to_string(run.number);
    summary.runs += result.injected ? 1 : 0;
    for (const std::string& what : result.wrong) {
      summary.wrong.push_back(name + ": " + what);
    }
    if (!is_complete(result)) {
      summary.wrong.push_back(name + (result.too_slow.empty() ? ": nothing failed, but " + result.incomplete
                                                              : ": the machine is too slow: " + result.too_slow));
    }
    if (run.number == most_calls) {
      summary.wrong.push_back(name + ": the series has no end");
    }
    m_progress[run.series].is_over |= !result.injected || run.number >= most_calls;
  }

  const std::vector<Series>& m_series;
  std::mutex m_mutex;
  std::condition_variable m_has_room;
  std::vector<Progress> m_progress;  // of the series; guarded by m_mutex, as the rest while there are threads
  std::vector<Run> m_repeated;
  int m_at_a_time = most_at_a_time;
  int m_going_on = 0;
  int m_successes = 0;
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

void skip_where_forked_threads_hang()
{
#if defined(__SANITIZE_ADDRESS__) && (defined(__clang__) ? __clang_major__ < 17 : __GNUC__ < 14)
  skip(
      "the address sanitizer of this compiler hangs in a process that a thread has forked; clang 17 and gcc 14 do not");
#endif
}

Summary run_all(const std::vector<Series>& series)
{
  const std::vector<Series> chosen = selected(series);
  Runs runs(chosen);
  std::vector<std::thread> threads;
  for (int i = 0; i < most_at_a_time; ++i) {
    threads.emplace_back([&] { runs.work(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
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
