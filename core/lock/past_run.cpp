// SPDX-License-Identifier: Apache-2.0
#include "lock/past_run.h"

#include "lock/event_log.h"
#include "lock/requests.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace rlock {
namespace {

// Follows the entries from grants to ends.
class Runs {
 public:
  void read(const EventLogEntry& entry)
  {
    if (entry.kind) {
      read(*entry.kind, entry);
    }
    if (entry.taker) {
      grant(entry);
    }
  }

  std::vector<PastRun> over(const IsHolder& is_holder, std::int64_t now_ms)
  {
    for (const Run& run : std::vector<Run>(m_open)) {
      if (!is_holder(run.past.owner)) {
        expire(run.past.owner, now_ms);
      }
    }
    std::erase_if(m_over, [](const PastRun& past) { return past.info && !past.info->freeze.empty(); });  // it is no run
    sort_newest_first(m_over);
    return std::move(m_over);
  }

 private:
  struct Run {
    PastRun past;
    bool exclusive;            // no other client has the lock at the same time
    bool has_mode;             // the lock has readers as well
    bool unconfirmed;          // handed over to a waiter, which has not taken it yet
    bool wanted = false;       // by an operator
    RunResult outermost = {};  // as the outermost hold said, while a nested one is left
  };

  void read(EventKind kind, const EventLogEntry& entry)
  {
    switch (kind) {
      case EventKind::asked: return wanted(entry);
      case EventKind::confirmed: return confirm(entry.owner);
      case EventKind::unused: return forget_lost(entry.owner);
      case EventKind::skipped: return skip(entry);
      case EventKind::released: return release(entry);
      case EventKind::lost:
      case EventKind::forced: return take_away(entry);
      case EventKind::acquired:
      case EventKind::renewed_late:
      case EventKind::replaced: return;
    }
  }

  void wanted(const EventLogEntry& entry)
  {
    if (Run* const run = find(entry.owner)) {
      run->wanted = true;
      run->past.forced_by = entry.by;
    }
  }

  void confirm(const std::string& owner)
  {
    if (Run* const run = find(owner)) {
      run->unconfirmed = false;
    }
  }

  void skip(const EventLogEntry& entry)
  {
    forget_expired(entry.owner);
    m_over.push_back({.owner = Owner::of(entry.owner),
                      .start_ms = entry.time_ms - entry.waited.count(),
                      .duration = entry.waited,
                      .exit_code = entry.result.exit_code,
                      .outcome = entry.result.exit_code ? Outcome::failed : Outcome::skipped,
                      .info = entry.info,
                      .times = entry.times,
                      .busy_by = entry.by.empty() ? busy_by(entry) : text_of_newer(entry.by),
                      .replaced = !entry.by.empty()});
  }

  // The holder that kept the run from beginning; its own run may be over, where it keeps the lock (--min-hold).
  std::string busy_by(const EventLogEntry& entry)
  {
    const Owner holder = Owner::of(entry.holder.value_or(""));
    if (const Run* const run = find(holder.text())) {
      return text_of_busy(holder, run->past.info);
    }
    const auto over =
        std::find_if(m_over.rbegin(), m_over.rend(), [&](const PastRun& past) { return past.owner == holder; });
    return text_of_busy(holder, over == m_over.rend() ? std::nullopt : over->info);
  }

  void release(const EventLogEntry& entry)
  {
    Run* const run = find(entry.owner);
    if (run == nullptr) {
      return entry.is_outermost && !entry.left && !correct(entry) ? add_forgotten(entry, entry.result) : void();
    }
    run->outermost = entry.is_outermost ? entry.result : run->outermost;
    if (entry.left) {
      run->exclusive = run->exclusive && !run->has_mode;  // a writer may go on as a reader
    } else {
      const RunResult result = run->outermost;
      run->past.fence = result.fence > 0 ? result.fence : run->past.fence;
      run->past.exit_code = result.exit_code;
      run->past.outcome = result.outcome || !run->wanted ? result.outcome : Outcome::forced;
      run->past.attempt = result.attempt;
      run->past.kept_for = result.kept_for;
      result.outcome == Outcome::unused ? drop(entry.owner) : end(entry.owner, entry.time_ms);
    }
  }

  // The result of a run that counts as lost, because its lease was over before the release came. False: there is no such run.
  bool correct(const EventLogEntry& entry)
  {
    const auto lost = std::ranges::find_if(m_over, [&](const PastRun& past) {
      return past.owner.text() == entry.owner && (past.outcome == Outcome::lost || past.outcome == Outcome::timed_out);
    });
    if (lost == m_over.end()) {
      return false;
    }
    lost->exit_code = entry.result.exit_code;
    lost->outcome = entry.result.outcome;
    lost->attempt = entry.result.attempt;
    lost->kept_for = entry.result.kept_for;
    lost->duration = lost->duration.value_or(held_until(*lost, m_found_free[entry.owner]));
    return true;
  }

  // An owner that says that it has lost the lock may be found expired already. A fixed lease that ended as it was meant to was
  // lost if its owner says so: its job was still to be ended.
  void take_away(const EventLogEntry& entry)
  {
    const Outcome outcome = entry.kind == EventKind::forced ? Outcome::forced : Outcome::lost;
    if (entry.result.outcome == Outcome::unused) {
      drop(entry.owner);
      return forget_lost(entry.owner);
    }
    if (Run* const run = find(entry.owner)) {
      run->past.outcome = run->wanted ? Outcome::forced : outcome;
      run->past.forced_by = entry.kind == EventKind::forced ? entry.by : run->past.forced_by;
      return end(entry.owner, entry.time_ms);
    }
    for (PastRun& past : m_over) {
      if (past.owner.text() == entry.owner && (is_expired(past) || past.outcome == Outcome::timed_out)) {
        past.outcome = past.outcome == Outcome::forced ? Outcome::forced : outcome;
        past.duration = past.duration.value_or(held_until(past, std::min(entry.time_ms, m_found_free[entry.owner])));
        return;
      }
    }
    add_forgotten(entry, {.outcome = outcome, .fence = entry.result.fence});
  }

  // A run of which the log knew nothing when it ended. Its fencing number is when it began, in microseconds.
  void add_forgotten(const EventLogEntry& entry, const RunResult& result)
  {
    // The number of a lock beside native clients is a small one, and no time.
    const bool is_time = static_cast<std::int64_t>(result.fence / 1000) >= entry.time_ms / 2;
    if (result.fence == 0 || !is_time) {
      return;
    }
    PastRun past{.owner = Owner::of(entry.owner),
                 .start_ms = static_cast<std::int64_t>(result.fence / 1000),
                 .exit_code = result.exit_code,
                 .outcome = result.outcome,
                 .fence = result.fence,
                 .info = entry.info};
    past.duration = held_until(past, entry.time_ms);
    m_over.push_back(std::move(past));
  }

  static Millis held_until(const PastRun& past, std::int64_t end_ms)
  {
    return Millis{std::max<std::int64_t>(end_ms - past.start_ms, 0)};
  }

  static bool is_expired(const PastRun& past) { return !past.duration; }

  // Forgets the run of an owner that lost its lock before its job began.
  void forget_lost(const std::string& owner)
  {
    std::erase_if(m_over, [&](const PastRun& past) { return past.owner.text() == owner; });
  }

  // Forgets the run of a waiter that was stopped and did not notice a hand-over, so that no job began.
  void forget_expired(const std::string& owner)
  {
    std::erase_if(m_over, [&](const PastRun& past) { return past.owner.text() == owner && is_expired(past); });
  }

  void grant(const EventLogEntry& entry)
  {
    const std::string& taker = *entry.taker;
    for (const Run& run : std::vector<Run>(m_open)) {
      if ((!entry.is_shared || run.exclusive) && run.past.owner.text() != taker) {
        expire(run.past.owner, entry.time_ms);
      }
    }
    drop(taker);
    forget_expired(taker);
    m_open.push_back({.past = {.owner = Owner::of(taker),
                               .start_ms = entry.time_ms,
                               .fence = entry.fence,
                               .info = entry.info,
                               .waited = entry.waited},
                      .exclusive = !entry.is_shared,
                      .has_mode = entry.has_mode,
                      .unconfirmed = !entry.found_free() || entry.is_claim});
  }

  // Its lock was found free, or granted to another client, at that time. A lease that was not to be renewed may have ended as
  // it was meant to.
  void expire(const Owner& owner, std::int64_t found_ms)
  {
    Run& run = *find(owner.text());
    const auto& info = run.past.info;
    const bool has_fixed_lease = info && !info->automatic && info->lease > Millis{0};
    if (has_fixed_lease && !run.unconfirmed && found_ms - run.past.start_ms >= info->lease.count()) {
      run.past.duration = info->lease;
    }
    if (run.wanted) {
      run.past.outcome = Outcome::forced;
    } else if (run.past.duration) {
      run.past.outcome = Outcome::timed_out;
    } else if (!run.unconfirmed) {
      run.past.outcome = Outcome::lost;
    }
    m_found_free[owner.text()] = found_ms;
    m_over.push_back(run.past);
    drop(owner.text());
  }

  void end(const std::string& owner, std::int64_t time_ms)
  {
    PastRun past = find(owner)->past;
    past.duration = held_until(past, time_ms);
    m_over.push_back(std::move(past));
    drop(owner);
  }

  Run* find(std::string_view owner)
  {
    const auto found =
        std::find_if(m_open.begin(), m_open.end(), [&](const Run& run) { return run.past.owner.text() == owner; });
    return found == m_open.end() ? nullptr : &*found;
  }

  void drop(std::string_view owner)
  {
    std::erase_if(m_open, [&](const Run& run) { return run.past.owner.text() == owner; });
  }

  std::vector<Run> m_open;
  std::vector<PastRun> m_over;
  std::map<std::string, std::int64_t>
      m_found_free;  // when the lock of each owner whose end is in no entry was found free, in ms
};

}  // namespace

std::string text_of_newer(std::string_view newer)
{
  const auto info = decode_holder(newer);
  return info ? holder_text(Owner::of(""), info) : "";
}

std::optional<Outcome> outcome_by(std::optional<int> exit_code)
{
  return exit_code ? std::optional(*exit_code == 0 ? Outcome::succeeded : Outcome::failed) : std::nullopt;
}

std::optional<Outcome> outcome_of(const RunResult& result)
{
  return result.outcome ? result.outcome : outcome_by(result.exit_code);
}

std::string encode(const RunResult& result)
{
  std::string words;
  const auto add = [&](EventWord word, std::string_view value) {
    words += '\0';
    words += word_of(event_words, word);
    words += '\0';
    words += value;
  };
  if (result.exit_code) {
    add(EventWord::exit, std::to_string(*result.exit_code));
  }
  if (result.outcome && result.outcome != outcome_by(result.exit_code)) {
    add(EventWord::outcome, name_of(*result.outcome));
  }
  if (result.attempt > 0) {
    add(EventWord::attempt, std::to_string(result.attempt));
  }
  if (result.kept_for > Millis{0}) {
    add(EventWord::retry, std::to_string(result.kept_for.count()));
  }
  if (result.fence > 0) {
    add(EventWord::fence, std::to_string(result.fence));
  }
  return words;
}

const PastRun* last_run(const LockState& state)
{
  const auto found = std::ranges::find_if(state.runs, has_begun);
  if (found != state.runs.end()) {
    return &*found;
  }
  return state.runs.empty() ? nullptr : &state.runs.front();
}

std::vector<PastRun> past_runs(std::span<const EventLogEntry> entries, const IsHolder& is_holder, std::int64_t now_ms)
{
  Runs runs;
  for (const EventLogEntry& entry : entries) {
    runs.read(entry);
  }
  return runs.over(is_holder, now_ms);
}

// Sorts the places and not the runs: a sort of runs would be 80 kB of the program.
void sort_newest_first(std::vector<PastRun>& runs)
{
  std::vector<std::pair<std::int64_t, std::size_t>> places;
  places.reserve(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    places.emplace_back(runs[i].start_ms, i);
  }
  std::sort(places.begin(), places.end(), std::greater{});
  std::vector<PastRun> sorted;
  sorted.reserve(runs.size());
  for (const auto& [start, place] : places) {
    sorted.push_back(std::move(runs[place]));
  }
  runs = std::move(sorted);
}

}  // namespace rlock
