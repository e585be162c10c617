// SPDX-License-Identifier: Apache-2.0
#include "lock/past_run.h"

#include "lock/event_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <utility>

namespace rlock {
namespace {

constexpr std::array<std::string_view, 6> outcome_names{"succeeded", "failed",    "lost",
                                                        "forced",    "timed_out", "skipped"};

constexpr Millis longest_wait = std::chrono::years{10};  // that is believed

template <typename Number>
std::optional<Number> number(std::string_view digits)
{
  Number value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return failed == std::errc{} && !digits.empty() ? std::optional(value) : std::nullopt;
}

std::optional<Ending> outcome_named(std::string_view name)
{
  const auto found = std::find(outcome_names.begin(), outcome_names.end(), name);
  return found == outcome_names.end() ? std::nullopt
                                      : std::optional(static_cast<Ending>(found - outcome_names.begin()));
}

std::optional<Ending> outcome_by(std::optional<int> exit_code)
{
  return exit_code ? std::optional(*exit_code == 0 ? Ending::succeeded : Ending::failed) : std::nullopt;
}

EndOfRun result_in(const EventLogEntry& entry)
{
  EndOfRun result{.exit_code = number<int>(entry.word("exit")),
                  .outcome = outcome_named(entry.word("outcome")),
                  .fence = number<std::uint64_t>(entry.word("fence")).value_or(0)};
  result.unused = entry.word("outcome") == "unused";
  result.outcome = result.outcome ? result.outcome : outcome_by(result.exit_code);
  return result;
}

Millis waited_in(const EventLogEntry& entry)
{
  return std::clamp(Millis{number<std::int64_t>(entry.word("waited")).value_or(0)}, Millis{0}, longest_wait);
}

// Follows the entries from grants to ends.
class Runs {
 public:
  void read(const EventLogEntry& entry)
  {
    const std::string_view first = entry.first();
    if (first == "asked") {
      wanted(entry.subject());
    } else if (first == "confirmed") {
      confirm(entry.subject());
    } else if (first == "unused") {
      forget_lost(entry.subject());
    } else if (first == "skipped") {
      skip(entry);
    } else if (first == "released") {
      release(entry);
    } else if (first == "lost" || first == "forced") {
      take_away(entry);
    }
    if (first == "acquired" || entry.has("to")) {
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
    sort_newest_first(m_over);
    return std::move(m_over);
  }

 private:
  struct Run {
    PastRun past;
    bool exclusive;           // no other client has the lock at the same time
    bool has_mode;            // the lock has readers as well
    bool unconfirmed;         // handed over to a waiter, which has not taken it yet
    bool wanted = false;      // by an operator
    EndOfRun outermost = {};  // as the outermost hold said, while a nested one is left
  };

  void wanted(const std::string& owner)
  {
    if (Run* const run = find(owner)) {
      run->wanted = true;
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
    forget_expired(entry.subject());
    const Millis waited = waited_in(entry);
    const auto exit_code = number<int>(entry.word("exit"));
    m_over.push_back({.owner = Owner::of(entry.subject()),
                      .start_ms = entry.time_ms - waited.count(),
                      .duration = waited,
                      .exit_code = exit_code,
                      .outcome = exit_code ? Ending::failed : Ending::skipped,
                      .info = decode_holder(entry.word("info")),
                      .times = number<std::int64_t>(entry.word("times")).value_or(1)});
  }

  void release(const EventLogEntry& entry)
  {
    Run* const run = find(entry.subject());
    const bool is_outermost = entry.word("released") == entry.subject();
    if (run == nullptr) {
      return is_outermost && !entry.has("left") ? add_forgotten(entry, result_in(entry)) : void();
    }
    run->outermost = is_outermost ? result_in(entry) : run->outermost;
    if (entry.has("left")) {
      run->exclusive = run->exclusive && !run->has_mode;  // a writer may go on as a reader
    } else {
      const EndOfRun result = run->outermost;
      run->past.fence = result.fence > 0 ? result.fence : run->past.fence;
      run->past.exit_code = result.exit_code;
      run->past.outcome = result.outcome || !run->wanted ? result.outcome : Ending::forced;
      result.unused ? drop(entry.subject()) : end(entry.subject(), entry.time_ms);
    }
  }

  // An owner that says that it has lost the lock may be found expired already. A fixed lease that ended as it was meant to was
  // lost if its owner says so: its job was still to be ended.
  void take_away(const EventLogEntry& entry)
  {
    const Ending outcome = entry.first() == "forced" ? Ending::forced : Ending::lost;
    if (result_in(entry).unused) {
      drop(entry.subject());
      return forget_lost(entry.subject());
    }
    if (Run* const run = find(entry.subject())) {
      run->past.outcome = run->wanted ? Ending::forced : outcome;
      return end(entry.subject(), entry.time_ms);
    }
    for (PastRun& past : m_over) {
      if (past.owner.text() == entry.subject() && (is_expired(past) || past.outcome == Ending::timed_out)) {
        past.outcome = past.outcome == Ending::forced ? Ending::forced : outcome;
        past.duration =
            past.duration.value_or(held_until(past, std::min(entry.time_ms, m_found_free[entry.subject()])));
        return;
      }
    }
    add_forgotten(entry, {.outcome = outcome, .fence = result_in(entry).fence});
  }

  // A run of which the log knew nothing when it ended. Its fencing number is when it began, in microseconds.
  void add_forgotten(const EventLogEntry& entry, const EndOfRun& result)
  {
    if (result.fence == 0) {
      return;
    }
    PastRun past{.owner = Owner::of(entry.subject()),
                 .start_ms = static_cast<std::int64_t>(result.fence / 1000),
                 .exit_code = result.exit_code,
                 .outcome = result.outcome,
                 .fence = result.fence,
                 .info = decode_holder(entry.word("info"))};
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
    const bool found_free = entry.first() == "acquired";
    const std::string taker = found_free ? entry.subject() : std::string(entry.word("to"));
    const bool exclusive = !entry.has("wish") || entry.word("wish") == "write";
    for (const Run& run : std::vector<Run>(m_open)) {
      if ((exclusive || run.exclusive) && run.past.owner.text() != taker) {
        expire(run.past.owner, entry.time_ms);
      }
    }
    drop(taker);
    forget_expired(taker);
    m_open.push_back({.past = {.owner = Owner::of(taker),
                               .start_ms = entry.time_ms,
                               .fence = entry.fence,
                               .info = decode_holder(entry.word("info")),
                               .waited = waited_in(entry)},
                      .exclusive = exclusive,
                      .has_mode = entry.has("wish"),
                      .unconfirmed = !found_free || entry.has("claim")});
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
      run.past.outcome = Ending::forced;
    } else if (run.past.duration) {
      run.past.outcome = Ending::timed_out;
    } else if (!run.unconfirmed) {
      run.past.outcome = Ending::lost;
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

std::string_view name_of(Ending ending) { return outcome_names[static_cast<std::size_t>(ending)]; }

std::string encode(const EndOfRun& result)
{
  const std::string nul(1, '\0');
  std::string words;
  if (result.exit_code) {
    words += nul + "exit" + nul + std::to_string(*result.exit_code);
  }
  if (result.unused) {
    words += nul + "outcome" + nul + "unused";
  } else if (result.outcome && result.outcome != outcome_by(result.exit_code)) {
    words += nul + "outcome" + nul + std::string(name_of(*result.outcome));
  }
  if (result.fence > 0) {
    words += nul + "fence" + nul + std::to_string(result.fence);
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
