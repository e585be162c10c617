// SPDX-License-Identifier: Apache-2.0
// Jobs that log their activity: each process of the job's tree appends timestamps ("beats") to one file, so the times
// of a process are known even if it was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rlock::test {

struct Interval {
  std::int64_t first_ns;  // wall clock
  std::int64_t last_ns;
  int beats;
};

class ActivityLog {
 public:
  ActivityLog();

  // A shell whose background grandchild ignores TERM, HUP and INT; both beat until they are killed.
  [[nodiscard]] std::vector<std::string> stubborn_tree(const std::string& name) const;
  // Beats for about that many milliseconds, then exits 0.
  [[nodiscard]] std::vector<std::string> short_job(const std::string& name, int ms) const;

  // By process: "NAME.parent", "NAME.child" of a tree, "NAME" of a short job.
  [[nodiscard]] std::map<std::string, Interval> seen() const;
  // By job: everything of NAME taken together.
  [[nodiscard]] std::map<std::string, Interval> jobs() const;
  [[nodiscard]] bool tree_beats(const std::string& name) const;  // both processes have been seen

  [[nodiscard]] const std::filesystem::path& file() const { return m_file; }

 private:
  std::filesystem::path m_file;
};

// Empty, or the first two jobs that ran at the same time, in words.
std::string overlap(const std::map<std::string, Interval>& jobs);

std::int64_t now_ns();  // on the clock of the beats

}  // namespace rlock::test
