// SPDX-License-Identifier: Apache-2.0
// Jobs that bear witness: each process of the job's tree writes its beats into one file, so that who ran when can be
// told even of those that were killed.
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

class Witness {
 public:
  Witness();

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
