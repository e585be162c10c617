// SPDX-License-Identifier: Apache-2.0
#include "cli/output/prometheus.h"

#include "base/text.h"
#include "cli/output/show.h"
#include "lock/kept_runs.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

namespace rlock::cli {
namespace {

// A lock, and what its runs tell.
struct Sampled {
  const LockState& state;
  const PastRun* last;  // nullptr: no run that is over is known
  RunSummary summary;
  std::int64_t now_ms;
};

// The value of a metric; nullopt: it is not known.
using Metric = std::optional<std::string>;

Metric flag(bool is_set) { return is_set ? "1" : "0"; }
Metric number(std::uint64_t count) { return std::to_string(count); }
Metric known_number(std::uint64_t count) { return count == 0 ? std::nullopt : number(count); }

Metric seconds(std::int64_t ms)
{
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", static_cast<double>(ms) / 1000);
  return text.data();
}

Metric known_seconds(std::int64_t ms) { return ms > 0 ? seconds(ms) : std::nullopt; }

Metric ttl(const Sampled& lock)
{
  const LockState& state = lock.state;
  if (!state.ttl && ends_with_session(state.beside)) {
    return std::nullopt;
  }
  return state.held() && !state.ttl ? "+Inf" : seconds(state.held() ? state.ttl->count() : 0);
}

// Of the oldest holder. Its time is that of its host, which may be ahead of the clock here.
Metric age(const Sampled& lock)
{
  std::optional<std::int64_t> since;
  for (const Holder& holder : lock.state.holders) {
    if (holder.info && holder.info->since_ms > 0) {
      since = std::min(since.value_or(holder.info->since_ms), holder.info->since_ms);
    }
  }
  return since ? seconds(std::max<std::int64_t>(0, lock.now_ms - *since)) : std::nullopt;
}

Metric limit(const Sampled& lock)
{
  const auto* const permits = std::get_if<Permits>(&lock.state.kind);
  return known_number(permits != nullptr ? permits->limit : 0);
}

Metric last_start(const Sampled& lock)
{
  return lock.last != nullptr && has_begun(*lock.last) ? seconds(lock.last->start_ms) : std::nullopt;
}

Metric last_duration(const Sampled& lock)
{
  const bool has_duration = lock.last != nullptr && has_begun(*lock.last) && lock.last->duration;
  return has_duration ? seconds(lock.last->duration->count()) : std::nullopt;
}

Metric last_exit_code(const Sampled& lock)
{
  return lock.last != nullptr && lock.last->exit_code ? Metric(std::to_string(*lock.last->exit_code)) : std::nullopt;
}

Millis run_held_by(const PastRun& run) { return has_begun(run) ? run.duration.value_or(Millis{0}) : Millis{0}; }
Millis waited_by(const PastRun& run) { return has_begun(run) ? run.waited : Millis{0}; }

template <Millis time_of(const PastRun&)>
Metric recent_seconds(const Sampled& lock)
{
  Millis all{0};
  for (const PastRun& run : lock.state.runs) {
    all += time_of(run);
  }
  return lock.state.runs.empty() ? std::nullopt : seconds(all.count());
}

// Of the runs that the log still has. A collector takes the number for what it is now, as of a queue.
template <Outcome ending>
Metric recent(const Sampled& lock)
{
  std::int64_t runs = 0;
  for (const PastRun& run : lock.state.runs) {
    runs += run.outcome == ending ? std::clamp<std::int64_t>(run.times, 0, 1'000'000) : 0;
  }
  return lock.state.runs.empty() ? std::nullopt : number(static_cast<std::uint64_t>(runs));
}

Metric recently_acquired(const Sampled& lock)
{
  const auto had_it = [](const PastRun& run) { return has_begun(run) && run.fence > 0; };
  const auto runs = std::ranges::count_if(lock.state.runs, had_it);
  return lock.state.runs.empty() ? std::nullopt : number(static_cast<std::uint64_t>(runs));
}

struct Family {
  std::string_view name;
  std::string_view help;
  Metric (*value_of)(const Sampled& lock);
};

constexpr Family families[] = {
    {"rlock_held", "Whether the lock is held.", [](const Sampled& lock) { return flag(lock.state.held()); }},
    {"rlock_ttl_seconds", "Time until the lock expires unless it is renewed; 0 when it is free.", ttl},
    {"rlock_fence", "The last fencing number that the server gave out.",
     [](const Sampled& lock) { return known_number(lock.state.fence); }},
    {"rlock_holders", "Number of holders.", [](const Sampled& lock) { return number(lock.state.count); }},
    {"rlock_frozen", "Whether it is held by a freeze: no job starts (rlock freeze).",
     [](const Sampled& lock) { return flag(freeze_of(lock.state) != nullptr); }},
    {"rlock_limit", "Number of permits.", limit},
    {"rlock_waiting", "Number of waiters.", [](const Sampled& lock) { return number(lock.state.waiting.size()); }},
    {"rlock_age_seconds", "Time since the lock was acquired.", age},
    {"rlock_last_run_start_timestamp_seconds", "When the last run that is over began.", last_start},
    {"rlock_last_run_duration_seconds", "How long it held the lock.", last_duration},
    {"rlock_last_run_exit_code", "Its exit code.", last_exit_code},
    {"rlock_last_success_timestamp_seconds", "When the last run that succeeded ended.",
     [](const Sampled& lock) { return known_seconds(lock.summary.last_success_ms); }},
    {"rlock_last_failure_timestamp_seconds", "When the last run that failed ended.",
     [](const Sampled& lock) { return known_seconds(lock.summary.last_failure_ms); }},
    {"rlock_every_seconds", "How often a run is expected to succeed (--every).",
     [](const Sampled& lock) { return lock.summary.every ? seconds(lock.summary.every->count()) : std::nullopt; }},
    {"rlock_overdue", "Whether no run has succeeded for longer than that.",
     [](const Sampled& lock) {
       return lock.summary.every ? flag(overdue_since(lock.summary, lock.now_ms).has_value()) : std::nullopt;
     }},
    {"rlock_recent_held_seconds", "How long the runs that the server still knows held the lock.",
     recent_seconds<run_held_by>},
    {"rlock_recent_waited_seconds", "How long these runs waited for it in the queue.", recent_seconds<waited_by>},
    {"rlock_recent_acquired", "How many of these runs had the lock.", recently_acquired},
    {"rlock_recent_succeeded", "How many of these runs succeeded.", recent<Outcome::succeeded>},
    {"rlock_recent_failed", "How many failed.", recent<Outcome::failed>},
    {"rlock_recent_cancelled", "How many a signal from outside ended.", recent<Outcome::cancelled>},
    {"rlock_recent_lost", "How many lost the lock.", recent<Outcome::lost>},
    {"rlock_recent_forced", "How many were stopped by force-unlock.", recent<Outcome::forced>},
    {"rlock_recent_timed_out", "How many were stopped because their time was over.", recent<Outcome::timed_out>},
    {"rlock_recent_skipped", "How many did not run because the lock was busy.", recent<Outcome::skipped>},
};

// A collector refuses a file with invalid UTF-8. Invalid bytes and control characters become U+FFFD.
std::string label_value(std::string_view text)
{
  std::string value;
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    const char c = text.front();
    if (size == 0 || (c != '\n' && begins_with_unprintable(text))) {
      value += "\xef\xbf\xbd";
    } else if (c == '\\' || c == '"') {
      value += {'\\', c};
    } else {
      value += c == '\n' ? "\\n" : std::string(text.substr(0, size));
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return value;
}

}  // namespace

std::string prometheus_up(bool is_up)
{
  return std::string("# HELP rlock_up Whether the server has answered.\n# TYPE rlock_up gauge\nrlock_up ") +
         (is_up ? "1" : "0") + "\n";
}

std::string prometheus_text(std::span<const LockState> states, std::int64_t now_ms)
{
  std::vector<Sampled> locks;
  for (const LockState& state : states) {
    locks.push_back({.state = state, .last = last_run(state), .summary = summary_of(state), .now_ms = now_ms});
  }
  std::string text;
  for (const Family& family : families) {
    const std::string name(family.name);
    std::string samples;
    for (const Sampled& lock : locks) {
      if (const Metric value = family.value_of(lock)) {
        samples.append(name).append("{key=\"").append(label_value(lock.state.name.text()));
        samples.append("\"} ").append(*value).append("\n");
      }
    }
    if (!samples.empty()) {
      text.append("# HELP ").append(name).append(" ").append(family.help);
      text.append("\n# TYPE ").append(name).append(" gauge\n").append(samples);
    }
  }
  return text;
}

}  // namespace rlock::cli
