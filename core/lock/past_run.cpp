// SPDX-License-Identifier: Apache-2.0
#include "lock/past_run.h"

#include "lock/event_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
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
  EndOfRun result{.exit_code = number<int>(entry.word("exit")), .outcome = outcome_named(entry.word("outcome"))};
  result.unused = entry.word("outcome") == "unused";
  result.outcome = result.outcome ? result.outcome : outcome_by(result.exit_code);
  return result;
}

// Follows the entries from grants to ends.
class Runs {
 public:
  void read(const EventLogEntry& entry)
  {
    const std::string_view first = entry.first();
    if (first == "asked") {
      wanted(entry.subject());
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
    bool wanted = false;      // by an operator
    EndOfRun outermost = {};  // as the outermost hold said, while a nested one is left
  };

  void wanted(const std::string& owner)
  {
    if (Run* const run = find(owner)) {
      run->wanted = true;
    }
  }

  void skip(const EventLogEntry& entry)
  {
    const Millis waited =
        std::clamp(Millis{number<std::int64_t>(entry.word("waited")).value_or(0)}, Millis{0}, longest_wait);
    m_over.push_back({.owner = Owner::of(entry.subject()),
                      .start_ms = entry.time_ms - waited.count(),
                      .duration = waited,
                      .outcome = Ending::skipped,
                      .info = decode_holder(entry.word("info")),
                      .times = number<std::int64_t>(entry.word("times")).value_or(1)});
  }

  void release(const EventLogEntry& entry)
  {
    Run* const run = find(entry.subject());
    if (run == nullptr) {
      return;
    }
    const bool is_outermost = entry.word("released") == entry.subject();
    run->outermost = is_outermost ? result_in(entry) : run->outermost;
    if (entry.has("left")) {
      run->exclusive = run->exclusive && !run->has_mode;  // a writer may go on as a reader
    } else {
      const EndOfRun result = run->outermost;
      run->past.exit_code = result.exit_code;
      run->past.outcome = result.outcome || !run->wanted ? result.outcome : Ending::forced;
      result.unused ? drop(entry.subject()) : end(entry.subject(), entry.time_ms);
    }
  }

  // An owner that says that it has lost the lock may be found expired already.
  void take_away(const EventLogEntry& entry)
  {
    const Ending outcome = entry.first() == "forced" ? Ending::forced : Ending::lost;
    if (Run* const run = find(entry.subject())) {
      run->past.outcome = run->wanted ? Ending::forced : outcome;
      return end(entry.subject(), entry.time_ms);
    }
    for (PastRun& past : m_over) {
      if (past.owner.text() == entry.subject() && past.outcome == Ending::lost && !past.duration) {
        past.duration = Millis{std::max<std::int64_t>(entry.time_ms - past.start_ms, 0)};
      }
    }
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
    m_open.push_back({.past = {.owner = Owner::of(taker),
                               .start_ms = entry.time_ms,
                               .fence = entry.fence,
                               .info = decode_holder(entry.word("info"))},
                      .exclusive = exclusive,
                      .has_mode = entry.has("wish")});
  }

  // Its lock was found free, or granted to another client, at that time. A lease that was not to be renewed may have ended as
  // it was meant to.
  void expire(const Owner& owner, std::int64_t found_ms)
  {
    Run& run = *find(owner.text());
    const auto& info = run.past.info;
    const bool has_fixed_lease = info && !info->automatic && info->lease > Millis{0};
    if (has_fixed_lease && found_ms - run.past.start_ms >= info->lease.count()) {
      run.past.duration = info->lease;
    }
    run.past.outcome = run.wanted ? Ending::forced : run.past.duration ? Ending::timed_out : Ending::lost;
    m_over.push_back(run.past);
    drop(owner.text());
  }

  void end(const std::string& owner, std::int64_t time_ms)
  {
    PastRun past = find(owner)->past;
    past.duration = Millis{std::max<std::int64_t>(time_ms - past.start_ms, 0)};
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
  return words;
}

const PastRun* last_run(const LockState& state)
{
  const auto found =
      std::ranges::find_if(state.runs, [](const PastRun& run) { return run.outcome != Ending::skipped; });
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
