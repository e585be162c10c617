// SPDX-License-Identifier: Apache-2.0
// What the judge demands of a storm, from the records alone. Each function is a promise of rlock; it returns the runs that
// broke it.
#pragma once

#include "judge/records.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::judge {

struct Violation {
  std::string_view promise;  // "no overlap"
  std::string text;
  std::vector<std::size_t> runs;  // RunRecord::id
};
using Violations = std::vector<Violation>;
inline void append(Violations& all, const Violations& more) { all.insert(all.end(), more.begin(), more.end()); }

// One lock, held by one run for as long as its job lived.
struct Holder {
  const RunRecord* run;
  std::string key;
  std::uint64_t fence;  // 0: not known
  Instant begin;
  Instant last;  // the last sign of life of a process of the job
};
std::map<std::string, std::vector<Holder>> holders_by_key(const Records& records);  // each sorted by begin
bool is_shared(const RunRecord& run);  // a reader, or one of several permits

// How long before its first sign of life a job may have got its lock: the time for a hand-over and its confirmation.
inline constexpr Millis grant_to_begin{2000};

// No job runs beside another under an exclusive lock, and no more than there are permits. An overlap is excused when a fault
// that removes locks came between the begins, and rlock then did all that it promises: a greater fence, a job that was
// stopped soon, and a loss that was told.
struct Overlaps {
  Violations violations;
  std::map<std::string, int> excused;  // by the name of the fault
  Millis longest_excused{};
};
Overlaps check_overlaps(const Records& records);

// The fencing number grows with each new holder.
Violations check_fences(const Records& records);

// First come, first served.
struct QueueOrder {
  Violations violations;
  int compared = 0;
};
QueueOrder check_queue(const Records& records);

// The exit code of rlock says what became of the job.
Violations check_exits(const Records& records);

// A loss that nothing explains: no fault, no signal, no stall of the machine.
struct Losses {
  Violations violations;
  int told = 0;
};
Losses check_losses(const Records& records);

// A job dies soon after its rlock was killed, and before the lease ends when its rlock is stopped.
struct Deaths {
  Violations violations;
  int killed = 0;    // rlocks whose job lived then
  int stopped = 0;   // for longer than the lease
  Millis longest{};  // that a job outlived its killed rlock
};
Deaths check_deaths(const Records& records);

// "run 17 (plain, stock-1, fence 5)"
std::string describe(const RunRecord& run);

}  // namespace rlock::judge
