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

namespace rlock::cli {
namespace {

using Sample = std::optional<std::string> (*)(const LockState&, std::int64_t now_ms);

std::string seconds(std::int64_t ms)
{
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", static_cast<double>(ms) / 1000);
  return text.data();
}

std::optional<std::string> ttl(const LockState& state, std::int64_t)
{
  if (!state.ttl && ends_with_session(state.beside)) {
    return std::nullopt;
  }
  return state.held() && !state.ttl ? std::optional<std::string>("+Inf")
                                    : seconds(state.held() ? state.ttl->count() : 0);
}

std::optional<std::string> fence(const LockState& state, std::int64_t)
{
  return state.fence == 0 ? std::nullopt : std::optional(std::to_string(state.fence));
}

// Of the oldest holder. Its time is that of its host, which may be ahead of the clock here.
std::optional<std::string> age(const LockState& state, std::int64_t now_ms)
{
  std::optional<std::int64_t> since;
  for (const Holder& holder : state.holders) {
    if (holder.info && holder.info->since_ms > 0) {
      since = std::min(since.value_or(holder.info->since_ms), holder.info->since_ms);
    }
  }
  return since ? std::optional(seconds(std::max<std::int64_t>(0, now_ms - *since))) : std::nullopt;
}

std::optional<std::string> limit(const LockState& state, std::int64_t)
{
  const auto* permits = std::get_if<Permits>(&state.kind);
  return permits != nullptr && permits->limit > 0 ? std::optional(std::to_string(permits->limit)) : std::nullopt;
}

std::optional<std::string> last_start(const LockState& state, std::int64_t)
{
  const PastRun* const run = last_run(state);
  return run != nullptr && has_begun(*run) ? std::optional(seconds(run->start_ms)) : std::nullopt;
}

std::optional<std::string> last_duration(const LockState& state, std::int64_t)
{
  const PastRun* const run = last_run(state);
  const bool has_duration = run != nullptr && has_begun(*run) && run->duration;
  return has_duration ? std::optional(seconds(run->duration->count())) : std::nullopt;
}

std::optional<std::string> last_exit_code(const LockState& state, std::int64_t)
{
  const PastRun* const run = last_run(state);
  return run != nullptr && run->exit_code ? std::optional(std::to_string(*run->exit_code)) : std::nullopt;
}

std::optional<std::string> last_success(const LockState& state, std::int64_t)
{
  const std::int64_t last_ms = summary_of(state).last_success_ms;
  return last_ms > 0 ? std::optional(seconds(last_ms)) : std::nullopt;
}

std::optional<std::string> last_failure(const LockState& state, std::int64_t)
{
  const std::int64_t last_ms = summary_of(state).last_failure_ms;
  return last_ms > 0 ? std::optional(seconds(last_ms)) : std::nullopt;
}

std::optional<std::string> every(const LockState& state, std::int64_t)
{
  const auto every = summary_of(state).every;
  return every ? std::optional(seconds(every->count())) : std::nullopt;
}

std::optional<std::string> overdue(const LockState& state, std::int64_t now_ms)
{
  const RunSummary summary = summary_of(state);
  return summary.every ? std::optional<std::string>(overdue_since(summary, now_ms) ? "1" : "0") : std::nullopt;
}

Millis run_held_by(const PastRun& run) { return has_begun(run) ? run.duration.value_or(Millis{0}) : Millis{0}; }
Millis waited_by(const PastRun& run) { return has_begun(run) ? run.waited : Millis{0}; }

template <Millis time_of(const PastRun&)>
std::optional<std::string> recent_seconds(const LockState& state, std::int64_t)
{
  Millis all{0};
  for (const PastRun& run : state.runs) {
    all += time_of(run);
  }
  return state.runs.empty() ? std::nullopt : std::optional(seconds(all.count()));
}

// Of the runs that the log still has. A collector takes the number for what it is now, as of a queue.
template <Outcome ending>
std::optional<std::string> recent(const LockState& state, std::int64_t)
{
  std::int64_t runs = 0;
  for (const PastRun& run : state.runs) {
    runs += run.outcome == ending ? std::clamp<std::int64_t>(run.times, 0, 1'000'000) : 0;
  }
  return state.runs.empty() ? std::nullopt : std::optional(std::to_string(runs));
}

std::optional<std::string> recently_acquired(const LockState& state, std::int64_t)
{
  const auto had_it = [](const PastRun& run) { return has_begun(run) && run.fence > 0; };
  return state.runs.empty() ? std::nullopt : std::optional(std::to_string(std::ranges::count_if(state.runs, had_it)));
}

struct Family {
  std::string_view name;
  std::string_view help;
  Sample sample;
};

constexpr Family families[] = {
    {"rlock_held", "Whether the lock is held.",
     [](const LockState& state, std::int64_t) { return std::optional(std::string(state.held() ? "1" : "0")); }},
    {"rlock_ttl_seconds", "Time until the lock expires unless it is renewed; 0 when it is free.", ttl},
    {"rlock_fence", "The last fencing number that the server gave out.", fence},
    {"rlock_holders", "Number of holders.",
     [](const LockState& state, std::int64_t) { return std::optional(std::to_string(state.count)); }},
    {"rlock_frozen", "Whether it is held by a freeze: no job starts (rlock freeze).",
     [](const LockState& state, std::int64_t) { return std::optional(std::string(freeze_of(state) ? "1" : "0")); }},
    {"rlock_limit", "Number of permits.", limit},
    {"rlock_waiting", "Number of waiters.",
     [](const LockState& state, std::int64_t) { return std::optional(std::to_string(state.waiting.size())); }},
    {"rlock_age_seconds", "Time since the lock was acquired.", age},
    {"rlock_last_run_start_timestamp_seconds", "When the last run that is over began.", last_start},
    {"rlock_last_run_duration_seconds", "How long it held the lock.", last_duration},
    {"rlock_last_run_exit_code", "Its exit code.", last_exit_code},
    {"rlock_last_success_timestamp_seconds", "When the last run that succeeded ended.", last_success},
    {"rlock_last_failure_timestamp_seconds", "When the last run that failed ended.", last_failure},
    {"rlock_every_seconds", "How often a run is expected to succeed (--every).", every},
    {"rlock_overdue", "Whether no run has succeeded for longer than that.", overdue},
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
  std::string text;
  for (const Family& family : families) {
    const std::string name(family.name);
    std::string samples;
    for (const LockState& state : states) {
      if (const auto value = family.sample(state, now_ms)) {
        samples.append(name).append("{key=\"").append(label_value(state.name.text()));
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
