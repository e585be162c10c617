// SPDX-License-Identifier: Apache-2.0
// Jobs that log their activity: each process of a job appends timestamps ("beats") to one file, so that the times of a process
// are known even if it was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rlock::test {

struct Interval {
  std::int64_t first_ns;  // by the wall clock
  std::int64_t last_ns;
  int beats;
};

class ActivityLog {
 public:
  ActivityLog();

  // A shell whose background grandchild ignores TERM, HUP and INT; both beat until they are killed.
  [[nodiscard]] std::vector<std::string> stubborn_tree(const std::string& name) const;
  // A job that beats for about that many milliseconds, and then exits with 0.
  [[nodiscard]] std::vector<std::string> short_job(const std::string& name, int ms) const;

  // The times of each process: "NAME.parent" and "NAME.child" of a tree, "NAME" of a short job.
  [[nodiscard]] std::map<std::string, Interval> seen() const;
  // The times of each job: those of all its processes together.
  [[nodiscard]] std::map<std::string, Interval> jobs() const;
  [[nodiscard]] bool tree_beats(const std::string& name) const;  // both processes have been seen

  [[nodiscard]] const std::filesystem::path& file() const { return m_file; }

 private:
  std::filesystem::path m_file;
};

// The first two jobs that ran at the same time, in words; empty: there are none.
std::string overlap(const std::map<std::string, Interval>& jobs);

std::int64_t now_ns();  // on the clock of the beats

}  // namespace rlock::test
