// SPDX-License-Identifier: Apache-2.0
// The order of the holders: the fence grows, and waiters get the lock in the order of the queue.
#include "judge/checks.h"

#include <algorithm>
#include <chrono>

namespace rlock::judge {
namespace {

// The fence is the server's time or one more than the last; without the last, a clock that went back gives a lower one.
bool lost_count(const Records& records, const Holder& holder)
{
  const auto number_of = [&](Excuse excuse) {
    return std::count_if(records.faults.begin(), records.faults.end(), [&](const FaultRecord& fault) {
      return fault.excuse == excuse && fault.begin <= holder.begin;
    });
  };
  const Instant servers_time(std::chrono::microseconds(holder.fence) - records.wall_offset);
  const auto steps = number_of(Excuse::clock);
  return steps > 0 && servers_time > holder.begin - grant_to_begin - steps * longest_fault &&
         number_of(Excuse::lost_count) + number_of(Excuse::data_loss) + number_of(Excuse::fail_over) > 0;
}

// Then two servers may have granted at about the same time; the jobs begin in any order.
bool had_two_masters(const Records& records, const Holder& before, const Holder& holder)
{
  return std::any_of(records.faults.begin(), records.faults.end(), [&](const FaultRecord& fault) {
    return fault.excuse == Excuse::fail_over && fault.begin <= holder.begin &&
           fault.end >= before.begin - grant_to_begin;
  });
}

// Its lock was taken and granted again before its job began, and it was told so.
bool was_taken_before_begin(const Records& records, const Holder& holder)
{
  return was_told(*holder.run) &&
         std::any_of(records.faults.begin(), records.faults.end(), [&](const FaultRecord& fault) {
           return fault.excuse == Excuse::data_loss && fault.key == holder.key && fault.begin <= holder.begin &&
                  fault.end >= holder.begin - grant_to_begin;
         });
}

constexpr Millis longest_confirmation{500};  // a waiter that the machine runs late may lose its turn

// Only undisturbed waiters keep their place: a stopped one is skipped, and so is one that no message reaches.
bool keeps_place(const RunRecord& run)
{
  return run.kind == Kind::plain && run.patient && run.signals.empty() && run.evidence.begin;
}

bool was_left_in_peace(const Records& records, const RunRecord& run)
{
  const Instant begin = run.evidence.begin->at;
  return run.queued && !had_fault_of(run.keys.front(), records, run.spawned, begin) &&
         stalled(records, run.spawned, begin) <= longest_confirmation;
}

// Those that were started while it was certainly in line already.
void compare_with_later(const RunRecord& first, const std::vector<Holder>& holders, QueueOrder& result)
{
  for (const Holder& holder : holders) {
    const RunRecord& second = *holder.run;
    if (!keeps_place(second) || second.spawned < *first.queued || second.spawned > first.evidence.begin->at) {
      continue;
    }
    ++result.compared;
    if (second.evidence.begin->at < first.evidence.begin->at) {
      result.violations.push_back({"first come, first served",
                                   holder.key + ": " + describe(second) + " began before " + describe(first) +
                                       ", which waited already when it was started",
                                   {first.id, second.id}});
    }
  }
}

}  // namespace

Violations check_fences(const Records& records)
{
  Violations violations;
  for (const auto& [key, holders] : holders_by_key(records)) {
    const Holder* greatest = nullptr;            // of all holders so far
    const Holder* greatest_exclusive = nullptr;  // shared holders may begin in another order than they were granted
    for (const Holder& holder : holders) {
      if (holder.fence == 0) {
        continue;
      }
      const Holder* const before = is_shared(*holder.run) ? greatest_exclusive : greatest;
      if (before != nullptr && before->fence >= holder.fence && !lost_count(records, holder) &&
          !(before->fence > holder.fence &&
            (had_two_masters(records, *before, holder) || was_taken_before_begin(records, holder)))) {
        violations.push_back({"greater fences",
                              key + ": " + describe(*holder.run) + " began after " + describe(*before->run),
                              {before->run->id, holder.run->id}});
      }
      const auto raise = [&](const Holder*& known) {
        known = known == nullptr || known->fence < holder.fence ? &holder : known;
      };
      raise(greatest);
      if (!is_shared(*holder.run)) {
        raise(greatest_exclusive);
      }
    }
  }
  return violations;
}

QueueOrder check_queue(const Records& records)
{
  QueueOrder result;
  for (const auto& [key, holders] : holders_by_key(records)) {
    for (const Holder& holder : holders) {
      if (records.has_queue && keeps_place(*holder.run) && was_left_in_peace(records, *holder.run)) {
        compare_with_later(*holder.run, holders, result);
      }
    }
  }
  return result;
}

}  // namespace rlock::judge
