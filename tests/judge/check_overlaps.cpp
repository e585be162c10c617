// SPDX-License-Identifier: Apache-2.0
#include "judge/checks.h"

#include "base/defaults.h"

#include <algorithm>
#include <chrono>

namespace rlock::judge {
namespace {

// A holder whose lock was taken is told within 50 rounded_up and its job is dead within a second after that.
constexpr Millis told_and_dead{1050};
Millis rounded_up(Instant::duration duration) { return std::chrono::ceil<Millis>(duration); }

// A job that outlasts KILL lives on when its rlock cannot renew, so any fault may let another job in beside it.
bool is_for(const FaultRecord& fault, const Holder& loser)
{
  const bool removes_locks = fault.excuse != Excuse::none && fault.excuse != Excuse::lost_count;
  return (removes_locks || outlasts_kill(loser.run->form)) && (fault.key.empty() || fault.key == loser.key);
}

// Of several faults a fail-over, because it excuses most.
const FaultRecord* excuse_for(const Records& records, const Holder& loser, const Holder& winner)
{
  const Instant granted = std::max(loser.run->spawned, loser.begin - grant_to_begin);
  const FaultRecord* excuse = nullptr;
  for (const FaultRecord& fault : records.faults) {
    if (is_for(fault, loser) && fault.begin <= winner.begin && fault.end >= granted) {
      excuse = excuse == nullptr || fault.excuse == Excuse::fail_over ? &fault : excuse;
    }
  }
  return excuse;
}

// A loser that is stopped, or that a fault cuts off from the server, is not told. Its job ends with the lease, or when it can.
Millis longest_excused(const Records& records, const Holder& loser, const Holder& winner)
{
  const auto cuts_off = [&](const FaultRecord& fault) {
    return fault.excuse != Excuse::data_loss && fault.begin <= loser.last && fault.end >= winner.begin - loser.run->ttl;
  };
  const bool untold = !loser.run->signals.empty() || loser.run->kind == Kind::script ||
                      std::any_of(records.faults.begin(), records.faults.end(), cuts_off);
  const Instant since = winner.begin - loser.run->ttl;
  const Millis until_it_can = loser.run->form == JobForm::frozen   ? sum_of(records.freezes, since, loser.last)
                              : loser.run->form == JobForm::hidden ? rounded_up(loser.last - since)
                                                                   : Millis{0};
  return (untold ? std::max(lease_of(*loser.run), told_and_dead) : told_and_dead) +
         stalled(records, since, loser.last) + until_it_can;
}

// After a fail-over an old master that was only stopped serves again until a sentinel demotes it. It confirms renewals and
// releases, so a holder learns of the loss by a later renewal. A keeper tells its script only while that runs.
bool ended_untold(const FaultRecord& fault, const Holder& loser, Millis length)
{
  const bool may_be_untold = fault.excuse == Excuse::fail_over || loser.run->kind == Kind::script;
  return may_be_untold && loser.run->evidence.end && length <= renewal_period(lease_of(*loser.run)) + told_and_dead;
}

// Empty: rlock did all that it promises to the loser.
std::string fault_of_loser(const Records& records, const FaultRecord& fault, const Holder& loser, const Holder& winner)
{
  const Millis length = rounded_up(loser.last - std::max(loser.begin, winner.begin));
  if (length > longest_excused(records, loser, winner)) {
    return "lasted too long for the fault " + fault.name;
  }
  const bool is_split = fault.excuse == Excuse::fail_over;
  if (loser.fence != 0 && winner.fence != 0 && (is_split ? winner.fence == loser.fence : winner.fence <= loser.fence)) {
    return "has no greater fence after the fault " + fault.name;
  }
  return was_told(*loser.run) || ended_untold(fault, loser, length) ? "" : "was not told after the fault " + fault.name;
}

// After a fail-over an old master that was only stopped may grant a lock that the new master has granted already, so
// either holder may be the loser. A resource believes the greater fence.
std::string fault_of_excuse(const Records& records, const FaultRecord& fault, const Holder& earlier,
                            const Holder& later)
{
  const std::string wrong = fault_of_loser(records, fault, earlier, later);
  const bool other = fault.excuse == Excuse::fail_over && fault_of_loser(records, fault, later, earlier).empty();
  return other ? "" : wrong;
}

void judge_pair(const Records& records, const Holder& loser, const Holder& winner, Overlaps& result)
{
  const FaultRecord* const fault = excuse_for(records, loser, winner);
  const std::string wrong = fault == nullptr ? "has no excuse" : fault_of_excuse(records, *fault, loser, winner);
  const Millis length = rounded_up(std::min(loser.last, winner.last) - winner.begin);
  if (wrong.empty()) {
    ++result.excused[was_told(*loser.run) ? fault->name : fault->name + ", over before it could be told"];
    result.longest_excused = std::max(result.longest_excused, length);
    return;
  }
  result.violations.push_back({"no overlap",
                               loser.key + ": " + describe(*winner.run) + " began " + std::to_string(length.count()) +
                                   " rounded_up before the job of " + describe(*loser.run) + " was dead; the overlap " +
                                   wrong,
                               {loser.run->id, winner.run->id}});
}

bool exclude(const Holder& one, const Holder& other)
{
  return one.run != other.run && !(is_shared(*one.run) && is_shared(*other.run));
}

// More permits are held than there are: the oldest of these holders should have ended.
void judge_permits(const Records& records, const std::vector<Holder>& holders, std::size_t newest, Overlaps& result)
{
  const Holder& winner = holders[newest];
  std::vector<const Holder*> alive;
  for (std::size_t i = 0; i < newest; ++i) {
    if (holders[i].last > winner.begin) {
      alive.push_back(&holders[i]);
    }
  }
  if (winner.run->kind != Kind::permits || alive.size() < winner.run->permits) {
    return;
  }
  const auto* const excused = [&]() -> const Holder* {
    const auto found = std::find_if(alive.begin(), alive.end(),
                                    [&](const Holder* one) { return excuse_for(records, *one, winner) != nullptr; });
    return found == alive.end() ? nullptr : *found;
  }();
  judge_pair(records, excused != nullptr ? *excused : *alive.front(), winner, result);
}

}  // namespace

std::string describe(const RunRecord& run)
{
  const std::string fence = run.evidence.begin ? ", fence " + std::to_string(run.evidence.begin->fence) : "";
  return "run " + std::to_string(run.id) + " (" + name_of(run.kind) + ", " + run.keys.front() + fence + ")";
}

bool is_shared(const RunRecord& run) { return run.kind == Kind::reader || run.kind == Kind::permits; }

std::map<std::string, std::vector<Holder>> holders_by_key(const Records& records)
{
  std::map<std::string, std::vector<Holder>> by_key;
  for (const RunRecord& run : records.runs) {
    if (!run.evidence.begin) {
      continue;
    }
    const Evidence::Begin& begin = *run.evidence.begin;
    Instant last = run.evidence.last;
    // A keeper that is killed or stopped cannot stop its script.
    for (const SentSignal& sent : run.signals) {
      last = sent.target == Target::keeper ? std::min(last, sent.at) : last;
    }
    const std::vector<std::string> keys = run.kind == Kind::several ? run.keys : std::vector{begin.key};
    for (const std::string& key : keys) {
      by_key[key].push_back({&run, key, key == begin.key ? begin.fence : 0, begin.at, last});
    }
  }
  for (auto& [key, holders] : by_key) {
    std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) { return a.begin < b.begin; });
  }
  return by_key;
}

Overlaps check_overlaps(const Records& records)
{
  Overlaps result;
  for (const auto& [key, holders] : holders_by_key(records)) {
    for (std::size_t later = 0; later < holders.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        if (exclude(holders[earlier], holders[later]) && holders[earlier].last > holders[later].begin) {
          judge_pair(records, holders[earlier], holders[later], result);
        }
      }
      judge_permits(records, holders, later, result);
    }
  }
  return result;
}

}  // namespace rlock::judge
