// SPDX-License-Identifier: Apache-2.0
#include "sim/limits.h"

#include "base/defaults.h"

#include <algorithm>

namespace rlock::sim {
namespace {

constexpr Millis silent_waiters_limit{4'000};  // contract: for so long dead and stopped waiters together delay the next

// A stopped freeze delays the others for so long: its time to confirm, and until a waiter asks again. No waiter passes a freeze, so each
// one counts.
constexpr Millis stopped_freeze_limit{3'000};

constexpr Millis killed_waiters_limit{
    2'000};  // of which the crashes of waiters that look at the end of a ttl need a part

bool is_crash(const Fault& fault)
{
  return fault.kind == FaultKind::kill_runner || fault.kind == FaultKind::kill_guardian ||
         fault.kind == FaultKind::kill_both;
}

bool has_only_crashes(const Schedule& schedule) { return std::ranges::all_of(schedule.faults, is_crash); }

Millis stopped_freezes_limit(const Schedule& schedule)
{
  const auto count = std::ranges::count_if(schedule.clients, [&](const ClientPlan& plan) {
    return plan.freezes && std::ranges::any_of(schedule.faults, [&](const Fault& fault) {
             return fault.kind == FaultKind::stop_both && fault.client == plan.number;
           });
  });
  return count * stopped_freeze_limit;
}

Millis clock_steps(const Schedule& schedule)
{
  Millis all{0};
  for (const Fault& fault : schedule.faults) {
    all += fault.kind == FaultKind::step_clock ? std::chrono::abs(fault.amount) : Millis{0};
  }
  return all;
}

Millis slack_of(const Schedule& schedule, bool is_mixed)
{
  // A waiter polls while the lock is held as another kind, less often the further behind it is.
  const Millis poll = is_mixed ? Millis{1000} * static_cast<int>(schedule.clients.size()) : Millis{0};
  const Millis min_hold = std::ranges::max(schedule.clients, {}, &ClientPlan::min_hold).min_hold;
  return Millis{500} + poll + min_hold + time_of_messages(schedule);
}

// A hold and a claim end with a presence. When that is gone no message tells, and what is shown as the ttl of the hold is a bound.
Millis look_again(const Schedule& schedule) { return schedule.store == StoreKind::sessions ? schedule.ttl : Millis{0}; }

}  // namespace

Nanos last_moment(const Schedule& schedule)
{
  Millis most = calm_from(schedule) + Millis{40'000} + schedule.ttl * 4 + clock_steps(schedule);
  for (const ClientPlan& plan : schedule.clients) {
    most += plan.runs * (plan.job_lasts + plan.min_hold + plan.pause + Millis{1000}) + plan.starts;
    most += plan.nests ? plan.runs * schedule.ttl : Millis{0};
  }
  return nanos(most + static_cast<int>(schedule.faults.size()) * schedule.ttl);
}

// Without faults only messages take time. Each crash costs a ttl, also the end of a job that kills the rlock in it. After other
// faults a waiter may have missed a message: it asks by itself (look_again_after), and another one may have missed the lock that
// it was handed (handover_confirmation).
Nanos idle_limit(const Schedule& schedule, bool is_mixed)
{
  const Millis slack = slack_of(schedule, is_mixed);
  if (schedule.faults.empty() && std::ranges::none_of(schedule.clients, &ClientPlan::nests)) {
    return nanos(slack);
  }
  const Millis missed = look_again_after + handover_confirmation + schedule.server_timeout;
  if (has_only_crashes(schedule)) {
    return nanos(schedule.ttl + look_again(schedule) + slack +
                 (std::ssize(schedule.faults) > 4 ? killed_waiters_limit : Millis{0}));
  }
  return nanos(schedule.ttl + look_again(schedule) + slack + missed);
}

std::optional<Nanos> undisturbed_wait_limit(const Schedule& schedule, bool is_mixed)
{
  const bool is_bounded = std::ranges::all_of(
      schedule.faults, [](const Fault& fault) { return is_crash(fault) || fault.kind == FaultKind::stop_both; });
  if (!is_bounded || is_mixed) {
    return std::nullopt;
  }
  const Millis held_by_dead = schedule.stops_only_waiters ? Millis{0} : schedule.ttl;
  // A Redis server soon knows which waiters are dead.
  const bool are_known_dead =
      schedule.stops_only_waiters && has_only_crashes(schedule) && schedule.store == StoreKind::redis;
  const Millis by_silence = are_known_dead ? handover_confirmation : silent_waiters_limit;
  const Millis claimed = schedule.store == StoreKind::sessions ? schedule.ttl : by_silence;
  return nanos(held_by_dead + claimed + stopped_freezes_limit(schedule) + look_again(schedule) +
               slack_of(schedule, is_mixed));
}

Nanos idle_counts_from(const Schedule& schedule)
{
  return has_only_crashes(schedule) ? 0 : nanos(calm_from(schedule) + clock_steps(schedule));
}

}  // namespace rlock::sim
