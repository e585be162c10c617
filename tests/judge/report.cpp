// SPDX-License-Identifier: Apache-2.0
#include "judge/report.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace rlock::judge {
namespace {

constexpr Millis handed_over{100};  // from the last sign of one job to the first of the next

void write_counts(std::ostream& out, const char* title, const std::map<std::string, int>& counts)
{
  int sum = 0;
  for (const auto& [name, count] : counts) {
    sum += count;
  }
  out << title << ": " << sum << '\n';
  for (const auto& [name, count] : counts) {
    out << "  " << count << "  " << name << '\n';
  }
}

std::map<std::string, int> runs_by_kind(const Records& records)
{
  std::map<std::string, int> counts;
  for (const RunRecord& run : records.runs) {
    ++counts[name_of(run.kind)];
  }
  return counts;
}

std::map<std::string, int> jobs_by_form(const Records& records)
{
  std::map<std::string, int> counts;
  for (const RunRecord& run : records.runs) {
    counts[name_of(run.form)] += run.evidence.begin ? 1 : 0;
  }
  return counts;
}

std::map<std::string, int> runs_by_exit(const Records& records)
{
  std::map<std::string, int> counts;
  for (const RunRecord& run : records.runs) {
    ++counts[run.exit ? test::show(*run.exit) : "none"];
  }
  return counts;
}

std::map<std::string, int> faults_by_name(const Records& records)
{
  std::map<std::string, int> counts;
  for (const FaultRecord& fault : records.faults) {
    ++counts[fault.done ? fault.name : fault.name + " (in vain)"];
  }
  return counts;
}

int count_handovers(const Records& records)
{
  int count = 0;
  for (const auto& [key, holders] : holders_by_key(records)) {
    for (std::size_t i = 1; i < holders.size(); ++i) {
      const auto gap = holders[i].begin - holders[i - 1].last;
      count +=
          gap >= Instant::duration(0) && gap < handed_over && holders[i].run->spawned < holders[i - 1].last ? 1 : 0;
    }
  }
  return count;
}

Millis longest_stall(const Records& records)
{
  Millis longest{0};
  for (const Stall& stall : records.stalls) {
    longest = std::max(longest, std::chrono::ceil<Millis>(stall.to - stall.from));
  }
  return longest;
}

void write_violations(std::ostream& out, const Violations& violations)
{
  out << "violations: " << violations.size() << '\n';
  for (const Violation& violation : violations) {
    out << "  " << violation.promise << ": " << violation.text << '\n';
  }
}

}  // namespace

Verdict judge(const Records& records, const Violations& more, const std::map<std::string, int>& process_faults)
{
  const Overlaps overlaps = check_overlaps(records);
  const QueueOrder queue = check_queue(records);
  const Losses losses = check_losses(records);
  const Deaths deaths = check_deaths(records);
  Verdict verdict{overlaps.violations, {}};
  for (const Violations& some :
       {check_fences(records), queue.violations, check_exits(records), losses.violations, deaths.violations, more}) {
    append(verdict.violations, some);
  }
  std::ostringstream out;
  write_counts(out, "rlocks", runs_by_kind(records));
  write_counts(out, "their ends", runs_by_exit(records));
  write_counts(out, "jobs that began", jobs_by_form(records));
  out << "freezes of the file system of some: " << records.freezes.size() << '\n';
  write_counts(out, "faults of processes", process_faults);
  write_counts(out, "faults of servers, and operators", faults_by_name(records));
  out << "handed over within " << handed_over.count() << " ms: " << count_handovers(records) << '\n'
      << "waiters whose order was compared: " << queue.compared << '\n'
      << "losses told with 121: " << losses.told << '\n'
      << "killed while their job ran: " << deaths.killed
      << "; the longest that a job outlived its rlock: " << deaths.longest.count() << " ms\n"
      << "stopped for longer than the lease: " << deaths.stopped << '\n';
  write_counts(out, "excused overlaps", overlaps.excused);
  out << "longest excused overlap: " << overlaps.longest_excused.count() << " ms\n"
      << "longest stall of the machine: " << longest_stall(records).count() << " ms, of " << records.stalls.size()
      << " stalls\n";
  write_violations(out, verdict.violations);
  verdict.text = out.str();
  return verdict;
}

}  // namespace rlock::judge
