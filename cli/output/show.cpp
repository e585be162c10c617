// SPDX-License-Identifier: Apache-2.0
#include "cli/output/show.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "lock/kept_runs.h"
#include "run/verdict.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <set>

namespace rlock::cli {

std::optional<Millis> age_of(const LockState& state, std::int64_t wall_ms)
{
  if (!state.held() || !state.holders.front().info) {
    return std::nullopt;
  }
  const std::int64_t since = state.holders.front().info->since_ms;
  return since > 0 && since <= wall_ms ? std::optional(Millis{wall_ms - since}) : std::nullopt;
}

bool comes_before(const LockState& one, const LockState& other, SortBy sort, std::int64_t wall_ms)
{
  switch (sort) {
    case SortBy::age: return age_of(one, wall_ms) > age_of(other, wall_ms);  // nullopt is less than any age
    case SortBy::ttl: return one.ttl.value_or(Millis::max()) < other.ttl.value_or(Millis::max());
    case SortBy::waiting: return one.waiting.size() > other.waiting.size();
    case SortBy::rate:
    case SortBy::key: break;
  }
  return one.name.text() < other.name.text();
}

void sort_locks(std::vector<LockState>& states, SortBy sort, std::int64_t wall_ms)
{
  const auto by = [&](SortBy order) {
    return [=](const LockState& one, const LockState& other) { return comes_before(one, other, order, wall_ms); };
  };
  std::sort(states.begin(), states.end(), by(SortBy::key));
  std::stable_sort(states.begin(), states.end(), by(sort));
}

std::string revoked_mark(const LockState& state)
{
  const auto revoked = std::ranges::count(state.holders, true, &Holder::revoked);
  const std::string of = state.count > 1 ? std::to_string(revoked) + " of " + std::to_string(state.count) + " " : "";
  return revoked == 0 ? "" : " (" + of + "revoked)";
}

bool is_job_over(const LockState& state)
{
  return state.held() &&
         std::ranges::all_of(state.holders, [](const Holder& each) { return each.info && each.info->over; });
}

namespace {

constexpr std::size_t waiters_shown = 10;
constexpr std::size_t advised_holders = 3;
template <std::size_t N>
using Cells = std::array<std::string, N>;
using Row = Cells<6>;

// Empty when `value` is empty.
std::string line(std::string_view label, const std::string& value)
{
  char padded[16];
  std::snprintf(padded, sizeof padded, "  %-9.*s", static_cast<int>(label.size()), label.data());
  return value.empty() ? "" : padded + value + "\n";
}

std::string show_ttl(const LockState& state)
{
  if (!state.ttl) {
    return ends_with_session(state.beside) ? "unknown: it ends with the session of its client"
                                           : "none: it never expires by itself";
  }
  const Holder& first = state.holders.front();
  std::string left = show_roughly(*state.ttl);
  if (!first.info) {
    return left;
  }
  if (is_job_over(state)) {
    return left + ", then free: --min-hold, or the pause before the next attempt";
  }
  return left + (first.info->automatic && !first.revoked ? ", renewed while the job runs" : ", not renewed");
}

// `proven`: LockState::proven.
std::string show_holder(const Holder& holder, bool proven, std::int64_t now_ms)
{
  if (!proven && !holder.info) {
    return line("value", printable(holder.owner.text()));
  }
  if (!holder.info) {
    return line("holder", holder_text(holder.owner, {}) + " (another client, of which rlock knows no more)");
  }
  const HolderInfo& info = *holder.info;
  if (freeze_of(holder) != nullptr) {  // its process has ended
    return line("by", holder_text(holder.owner, holder.info)) + line("token", printable(holder.owner.text()));
  }
  return line("holder", holder_text(holder.owner, holder.info)) +
         line(info.over ? "ran" : "running", without_controls(info.command)) + line("label", printable(info.label)) +
         line("since", since_and_age(info.since_ms, now_ms)) + line("token", printable(holder.owner.text()));
}

// "bob@web2 (pid 72), since 2026-11-21 13:00:00 +01:00 (8s ago), running ./job.sh [nightly]"
std::string show_waiter(const Waiter& waiter, std::int64_t now_ms)
{
  const HolderInfo info = waiter.info.value_or(HolderInfo{});
  const std::string job = job_text(info);
  const std::string since = since_and_age(info.since_ms, now_ms);
  return holder_text(waiter.owner, waiter.info) + (since.empty() ? "" : ", since " + since) +
         (info.priority == 0 ? "" : ", priority " + std::to_string(info.priority)) +
         (waiter.is_starved() ? ", starved: " + std::to_string(waiter.passed) + " later callers were put in front of it"
                              : "") +
         (job.empty() ? "" : ", " + job) + (waiter.is_connected ? "" : " (not connected)");
}

// Of a queue in which some waiters have no connection.
std::string show_connections(const std::vector<Waiter>& waiting)
{
  const auto away = std::ranges::count(waiting, false, &Waiter::is_connected);
  return away == 0 ? ""
                   : std::to_string(away) + " of these " + std::to_string(waiting.size()) +
                         " are not connected: those far back ask every few seconds";
}

std::string show_queue(const std::vector<Waiter>& waiting, std::int64_t now_ms)
{
  const std::size_t shown = std::min(waiting.size(), waiters_shown);
  const std::size_t column = std::to_string(shown).size() + 2;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    std::string place = std::to_string(i + 1);
    place.resize(column, ' ');
    text += line(i == 0 ? "waiting" : "", place + show_waiter(waiting[i], now_ms));
  }
  const std::size_t more = waiting.size() - shown;
  return text + line("", more > 0 ? "… and " + std::to_string(more) + " more" : "") +
         line("", show_connections(waiting));
}

// The success that `rlock once` remembers.
std::string show_once(const LockState& state)
{
  if (!state.once) {
    return "";
  }
  const OnceSuccess& once = *state.once;
  return line("once", "succeeded " + shown_time(once.at_ms).value_or("") + " (" + show_roughly(once.ago) +
                          " ago); the server forgets that at " +
                          shown_time(once.at_ms + once.remembered_for.count()).value_or("-"));
}

constexpr std::string_view held_by = "held by ";
constexpr std::string_view replaced_by = "replaced by ";

// " (force-unlocked by ann as root@web1 (pid 71): moving the database)": who else had to do with a run or an event.
std::string show_other(std::string_view relation, std::string_view who)
{
  return who.empty() ? "" : " (" + std::string(relation) + printable(who) + ")";
}

std::string show_others(const PastRun& run)
{
  return show_other(forced_by, run.forced_by) + show_other(run.replaced ? replaced_by : held_by, run.busy_by);
}

// "3 times"; empty: once.
std::string show_times(std::int64_t times) { return times > 1 ? std::to_string(times) + " times" : ""; }

std::string outcome_of(const PastRun& run)
{
  const std::string_view of_no_job = run.duration ? "released" : "unconfirmed";
  return std::string(run.outcome ? outcome_name(run) : of_no_job) + (run.times > 1 ? " " + show_times(run.times) : "");
}

// "2026-11-23 03:15:00 +01:00 (4h 45m ago), 12m 4s, failed (exit 3), by alice@web1 (pid 71), running ./job.sh"
std::string show_run_line(const PastRun& run, const std::string& outcome, std::int64_t now_ms)
{
  const std::string duration = run.duration ? ", " + show_roughly(*run.duration) : "";
  return since_and_age(run.start_ms, now_ms) + duration + (outcome.empty() ? "" : ", " + outcome) + ", by " +
         describe({.owner = run.owner, .count = 1, .info = run.info}) + show_others(run);
}

// The label of the line tells that it was skipped: "3 times", or nothing.
std::string show_skip_line(const PastRun& run, std::int64_t now_ms)
{
  const bool is_told = run.outcome == Outcome::skipped;
  return show_run_line(run, is_told ? show_times(run.times) : show_outcome(run), now_ms);
}

// The last run, and the runs that were skipped since it began.
std::string show_last_runs(const LockState& state, std::int64_t now_ms)
{
  const PastRun* const last = last_run(state);
  if (last == nullptr) {
    return "";
  }
  const PastRun& first = state.runs.front();
  return line("last run", show_run_line(*last, show_outcome(*last), now_ms)) +
         (&first == last ? "" : line("skipped", show_skip_line(first, now_ms)));
}

// For each of the first few holders, the oldest first: the request that takes the lock from this holder, and from no other one however
// late it is sent.
std::string show_force_advice(const LockState& state, std::string_view server_option)
{
  const std::string lock = copied_word(state.name.text()) + std::string(server_option);
  if (freeze_of(state) != nullptr) {
    return line("to end", "rlock thaw " + lock);
  }
  std::vector<const Holder*> oldest_first;
  for (const Holder& holder : state.holders) {
    if (state.proven && !holder.revoked) {
      oldest_first.push_back(&holder);
    }
  }
  std::ranges::stable_sort(oldest_first, std::greater{}, [](const Holder* holder) { return holder->age; });
  oldest_first.resize(std::min(oldest_first.size(), advised_holders));
  std::string text;
  for (const Holder* const holder : oldest_first) {
    const std::string_view label = is_job_over(state) ? "to end" : "if stuck";
    text += line(text.empty() ? label : "",
                 "rlock force-unlock -k " + lock + " --token " + copied_word(holder->owner.text()));
  }
  return text;
}

// With several servers: owners that hold the lock on too few of them.
std::string show_partial(const LockState& state)
{
  std::string text;
  for (const Holder& holder : state.partial) {
    text += line("partly", holder_text(holder.owner, holder.info) + ", on too few servers to hold it");
  }
  return text;
}

Row row_of(const LockState& state, std::int64_t now_ms)
{
  const Holder& holder = state.holders.front();
  const std::string more = state.count > 1 ? " +" + std::to_string(state.count - 1) : "";
  const std::optional<Millis> age = age_of(state, now_ms);
  const HolderInfo* const freeze = freeze_of(state);
  const std::string command = freeze != nullptr    ? freeze_text(*freeze, state.ttl, now_ms)
                              : is_job_over(state) ? job_text(*holder.info)
                              : holder.info        ? without_controls(holder.info->command)
                                                   : "";
  return {printable(state.name.text()),
          holder_text(holder.owner, holder.info) + more + revoked_mark(state),
          state.ttl                         ? show_roughly(*state.ttl)
          : ends_with_session(state.beside) ? "unknown"
                                            : "never",
          age ? show_roughly(*age) : "-",
          std::to_string(state.waiting.size()),
          command.empty() ? "-" : command};
}

Row row_of(const ShownPool& pool)
{
  const std::string free = show_free_names(pool);
  return {printable(pool.pool.key),
          show_free(pool),
          "-",
          "-",
          std::to_string(pool.waiting.size()),
          free.empty() ? "-" : "free: " + shortened(free, longest_command)};
}

// The first row has the names of the columns. A first column without text is left out.
template <std::size_t N>
std::string aligned(const std::vector<Cells<N>>& rows, const Colors& colors)
{
  std::array<std::size_t, N> widest{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < N; ++i) {
      widest[i] = std::max(widest[i], width(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = widest[0] == 0 ? 1 : 0; i + 1 < N; ++i) {
      line += row[i] + std::string(widest[i] - width(row[i]) + 2, ' ');
    }
    line += row.back();
    text += (&row == &rows.front() ? colors.paint(Style::bold, line) : line) + "\n";
  }
  return text;
}

std::string_view relation_of(const LockEvent& event)
{
  return event.what == LockEvent::What::thawed    ? "by "
         : event.is_taken                         ? "now held by "
         : event.is_replaced                      ? replaced_by
         : event.what == LockEvent::What::skipped ? held_by
                                                  : forced_by;
}

// How the run under the hold that is over ended, if the exit code does not tell it.
std::string ending_of(const LockEvent& event)
{
  const bool is_told = !event.outcome || event.outcome == outcome_by(event.exit_code);
  return is_told                             ? ""
         : *event.outcome == Outcome::unused ? ", no job ran"
                                             : ", " + std::string(name_of(*event.outcome));
}

// How the lock is held; empty for a plain lock.
std::string label_of(const LockState& state)
{
  const auto* permits = std::get_if<Permits>(&state.kind);
  if (permits == nullptr) {
    const std::string format(name_of(state.beside));
    return std::string(kind_of(state.kind).status_label) + (format.empty() ? "" : " (format " + format + ")");
  }
  const std::string held = ", " + std::to_string(state.count);
  return permits->limit == 0 ? held + " permits (their number is gone)"
                             : held + " of " + std::to_string(permits->limit) + " permits";
}

std::string show_hold(const LockState& state, std::int64_t now_ms, const Colors& colors)
{
  if (const HolderInfo* const freeze = freeze_of(state)) {
    return colors.paint(Style::yellow, freeze_text(*freeze, state.ttl, now_ms));
  }
  if (!state.proven && !state.is_of_shedlock) {
    return "data of another program, or its lock";
  }
  const std::string held = colors.paint(Style::yellow, "held");
  const std::string held_for = is_job_over(state) ? ", its job is over" : "";
  return state.proven ? held + label_of(state) + held_for
                      : held + " by " + holder_text(state.holders.front().owner, {}) + " (ShedLock)";
}

}  // namespace

std::string since_and_age(std::int64_t since_ms, std::int64_t now_ms)
{
  std::string moment = shown_time(since_ms).value_or("");
  if (moment.empty()) {
    return "";
  }
  if (since_ms > now_ms) {
    return moment;
  }
  return moment + " (" + show_roughly(Millis{now_ms - since_ms}) + " ago)";
}

std::string show_outcome(const PastRun& run)
{
  return outcome_of(run) + (run.exit_code ? " (exit " + shown_exit_code(*run.exit_code) + ")" : "");
}

std::string show_status(const LockState& state, std::int64_t now_ms, const Colors& colors,
                        std::string_view server_option)
{
  const std::string key = colors.paint(Style::bold, printable(state.name.text())) + ": ";
  if (!state.held()) {
    return key + colors.paint(Style::green, "free") + "\n" + show_last_runs(state, now_ms) + show_once(state) +
           show_partial(state) + show_queue(state.waiting, now_ms);
  }
  std::string text = key + show_hold(state, now_ms, colors) + "\n";
  for (const Holder& holder : state.holders) {
    text += state.is_of_shedlock ? "" : show_holder(holder, state.proven, now_ms);
    text += holder.count > 1 ? line("count", std::to_string(holder.count)) : "";
    text += holder.revoked ? line("revoked", "its renewals are refused (force-unlock), so it ends with its ttl") : "";
  }
  text += line("ttl", show_ttl(state));
  text += state.fence > 0 ? line("fence", std::to_string(state.fence)) : "";
  return text + show_force_advice(state, server_option) + show_last_runs(state, now_ms) + show_once(state) +
         show_partial(state) + show_queue(state.waiting, now_ms);
}

std::string show_history(const std::vector<ShownRun>& runs, bool names_locks, const Colors& colors)
{
  std::vector<Cells<8>> rows{
      {names_locks ? "KEY" : "", "START", "DURATION", "OUTCOME", "EXIT", "WHO", "FENCE", "COMMAND"}};
  rows.reserve(runs.size() + 1);
  for (const auto& [name, past] : runs) {
    const PastRun& run = *past;
    const std::string job = run.info ? without_controls(run.info->command) : "";
    const std::string label = run.info && !run.info->label.empty() ? " [" + printable(run.info->label) + "]" : "";
    rows.push_back({names_locks ? printable(name->text()) : "", shown_time(run.start_ms).value_or("-"),
                    run.duration ? show_roughly(*run.duration) : "-", outcome_of(run),
                    run.exit_code ? shown_exit_code(*run.exit_code) : "-", holder_text(run.owner, run.info),
                    run.fence > 0 ? std::to_string(run.fence) : "-",
                    (job.empty() && label.empty() ? "-" : job + label) + show_others(run)});
  }
  return runs.empty() ? "" : aligned(rows, colors);
}

std::string show_history(const LockState& state)
{
  std::vector<ShownRun> runs;
  runs.reserve(state.runs.size());
  for (const PastRun& run : state.runs) {
    runs.push_back({&state.name, &run});
  }
  return show_history(runs, false);
}

std::string show_all(const std::vector<LockState>& states, std::int64_t now_ms, const Colors& colors)
{
  const auto age = [&](std::int64_t ms) {
    return ms == 0 ? "-" : show_roughly(Millis{std::max<std::int64_t>(now_ms - ms, 0)}) + " ago";
  };
  std::vector<Cells<9>> rows{{"KEY", "HOLDER", "TTL", "AGE", "SUCCESS", "FAILURE", "SKIPPED", "EVERY", "OVERDUE"}};
  rows.reserve(states.size() + 1);
  for (const LockState& state : states) {
    const RunSummary summary = summary_of(state);
    const auto late = overdue_since(summary, now_ms);
    const HolderInfo* const freeze = freeze_of(state);
    const Row held = state.held() ? row_of(state, now_ms) : Row{"", "-", "-", "-", "", ""};
    rows.push_back({printable(state.name.text()), freeze != nullptr ? freeze_text(*freeze, state.ttl, now_ms) : held[1],
                    held[2], held[3], age(summary.last_success_ms), age(summary.last_failure_ms),
                    std::to_string(summary.skips), summary.every ? show_roughly(*summary.every) : "-",
                    late ? colors.paint(Style::red, show_roughly(*late)) : "-"});
  }
  return states.empty() ? "" : aligned(rows, colors);
}

std::string show_settings(const std::vector<ShownSetting>& settings, const Colors& colors)
{
  std::vector<Cells<3>> rows{{"SETTING", "VALUE", "FROM"}};
  for (const ShownSetting& setting : settings) {
    rows.push_back({printable(setting.name), printable(setting.value.value_or("-")), printable(setting.from)});
  }
  return aligned(rows, colors);
}

std::string show_pool_status(const ShownPool& pool, std::int64_t now_ms, const Colors& colors)
{
  return show_pool(pool, colors) + "\n" + line("free", shortened(show_free_names(pool), longest_command)) +
         show_queue(pool.waiting, now_ms);
}

std::string show_list(const std::vector<LockState>& states, std::int64_t now_ms, const Colors& colors,
                      const std::vector<ShownPool>& pools)
{
  std::vector<Row> rows;
  std::set<std::string_view> shown;
  for (const LockState& state : states) {
    if (!state.held()) {
      continue;
    }
    for (const ShownPool& pool : pools) {
      if (state.name.text().starts_with(pool.pool.key + ":") && shown.insert(pool.pool.key).second) {
        rows.push_back(row_of(pool));
      }
    }
    rows.push_back(row_of(state, now_ms));
  }
  if (rows.empty()) {
    return "";
  }
  rows.insert(rows.begin(), {"KEY", "HOLDER", "TTL", "AGE", "WAITING", "COMMAND"});
  return aligned(rows, colors);
}

std::string show_event(const ShownEvent& shown)
{
  const LockEvent& event = shown.event;
  std::string text = shown_time(event.time_ms).value_or("-") + "  " + printable(shown.name.text()) + "  " +
                     std::string(name_of(event.what)) + "  " +
                     describe({.owner = event.owner, .count = 1, .info = event.info});
  text += event.from.empty() ? "" : ", from " + holder_text(Owner::of(event.from), event.from_info);
  text += event.fence > 0 ? ", fence " + std::to_string(event.fence) : "";
  text += event.exit_code ? ", exit " + shown_exit_code(*event.exit_code) : "";
  text += ending_of(event);
  text += event.times > 1 ? ", " + show_times(event.times) : "";
  text += event.what == LockEvent::What::renewed_late ? ", " + show(event.left) + " before its end" : "";
  return text + show_other(relation_of(event), event.by) + "\n";
}

}  // namespace rlock::cli
