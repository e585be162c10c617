// SPDX-License-Identifier: Apache-2.0
#include "support/activity_log.h"

#include "support/temp_dir.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

namespace rlock::test {
namespace {

std::string beats(const std::string& name, const std::filesystem::path& file)
{
  return "echo \"" + name + " $(date +%s%N)\" >> " + file.string() + "; sleep 0.01";
}

void widen(std::map<std::string, Interval>& into, const std::string& name, std::int64_t first, std::int64_t last,
           int count)
{
  const auto [entry, fresh] = into.try_emplace(name, Interval{first, last, 0});
  entry->second.first_ns = std::min(entry->second.first_ns, first);
  entry->second.last_ns = std::max(entry->second.last_ns, last);
  entry->second.beats += count;
}

}  // namespace

ActivityLog::ActivityLog() : m_file(make_temp_dir("witness") / "beats") {}

std::vector<std::string> ActivityLog::stubborn_tree(const std::string& name) const
{
  return {"sh", "-c",
          "( trap '' TERM HUP INT; while :; do " + beats(name + ".child", m_file) + "; done ) & while :; do " +
              beats(name + ".parent", m_file) + "; done"};
}

std::vector<std::string> ActivityLog::short_job(const std::string& name, int ms) const
{
  return {"sh", "-c",
          "for i in $(seq " + std::to_string(std::max(1, ms / 12)) + "); do " + beats(name, m_file) + "; done"};
}

std::map<std::string, Interval> ActivityLog::seen() const
{
  std::map<std::string, Interval> intervals;
  std::ifstream file(m_file);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t at = 0;
    if (words >> name >> at) {
      widen(intervals, name, at, at, 1);
    }
  }
  return intervals;
}

std::map<std::string, Interval> ActivityLog::jobs() const
{
  std::map<std::string, Interval> whole;
  for (const auto& [name, interval] : seen()) {
    widen(whole, name.substr(0, name.find('.')), interval.first_ns, interval.last_ns, interval.beats);
  }
  return whole;
}

bool ActivityLog::tree_beats(const std::string& name) const
{
  const auto all = seen();
  return all.contains(name + ".parent") && all.contains(name + ".child");
}

std::string overlap(const std::map<std::string, Interval>& jobs)
{
  std::vector<std::pair<std::string, Interval>> by_start(jobs.begin(), jobs.end());
  std::sort(by_start.begin(), by_start.end(),
            [](const auto& a, const auto& b) { return a.second.first_ns < b.second.first_ns; });
  for (std::size_t i = 1; i < by_start.size(); ++i) {
    const auto& [before, earlier] = by_start[i - 1];
    const auto& [after, later] = by_start[i];
    if (later.first_ns <= earlier.last_ns) {
      return after + " began " + std::to_string((earlier.last_ns - later.first_ns) / 1'000'000) + " ms before " +
             before + " was over";
    }
  }
  return {};
}

std::int64_t now_ns()
{
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace rlock::test
