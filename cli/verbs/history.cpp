// SPDX-License-Identifier: Apache-2.0
// rlock history: what became of the runs of locks.
#include "base/duration.h"
#include "base/log.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/ask.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/known_locks.h"
#include "lock/kept_runs.h"

#include <algorithm>

namespace rlock::cli {
namespace {

struct RawHistory {
  RawKeys keys;
  RawServer server;
  std::int64_t since_ms = 0;  // 0: no --since
  bool failed = false;
  bool json = false;
  ColorWhen color = ColorWhen::automatic;
};

Result<Done> read_since(const Given& given, RawHistory& raw)
{
  const std::optional<Millis> ago = parse_duration(given.value);
  const auto time = ago ? std::optional(std::max<std::int64_t>(wall_clock_ms() - ago->count(), 1))
                        : read_time(given.value, TimeOfDay::last, wall_clock_ms());
  if (!time) {
    return usage("--since: '" + printable(given.value) +
                 "' is neither a duration nor a time (try --since 12h, or --since '2026-11-26 22:00')");
  }
  raw.since_ms = *time;
  return Done{};
}

// A run that began before `since_ms` and ended later counts: what failed in the night may have begun in the evening.
bool is_wanted(const PastRun& run, const RawHistory& raw)
{
  const std::int64_t end_ms = run.start_ms + run.duration.value_or(Millis{0}).count();
  return end_ms >= raw.since_ms && (!raw.failed || is_failure(run));
}

// Says from when on the runs are complete, if the caller asked for earlier ones.
void tell_bound(const LockName& name, const LockHistory& history, const RawHistory& raw)
{
  if (history.complete_since_ms > raw.since_ms && history.complete_since_ms > 0) {
    Log(Verbosity::normal)
        .notice(
            "of " + printable(name.text()) + ", not all runs before " +
            shown_time(history.complete_since_ms).value_or("-") +
            " are kept: the server has reached its bound (--history of the run keeps more runs than the event log)");
  }
}

void tell_none(const std::vector<LockName>& names, const RawHistory& raw)
{
  if (raw.json) {
    return;
  }
  const std::string which = names.size() == 1 ? " of " + printable(names.front().text()) : "";
  const std::string filtered = raw.failed ? "no run" + which + " that failed" : "no run" + which;
  const std::string since = raw.since_ms > 0 ? " since " + shown_time(raw.since_ms).value_or("-") : "";
  Log(Verbosity::normal)
      .notice(filtered + since +
              " is known; the server keeps runs for an hour, or as long as --history of the run says");
}

// Sorted over all locks, the last run first.
void print_runs(std::vector<ShownRun>& runs, const RawHistory& raw, const Environment& environment, bool names_locks)
{
  std::ranges::stable_sort(runs, std::greater{}, [](const ShownRun& shown) { return shown.run->start_ms; });
  if (!raw.json) {
    print(show_history(runs, names_locks, resolve_colors(raw.color, environment)));
    return;
  }
  for (const ShownRun& shown : runs) {
    print(run_json(*shown.name, *shown.run));
  }
}

bool names_one_lock(const RawHistory& raw, const Call& call)
{
  const auto subjects = resolve_subjects(raw.keys, call.operands);
  return subjects && subjects->size() == 1 && std::holds_alternative<LockName>(subjects->front());
}

// A freeze is no run, but says why there are none lately. An answer that fails is no failure of the verb.
void tell_freeze(const LockName& name, const OpenedStore& opened)
{
  const Result<LockState> state = opened.store->inspect(name, opened.limit());
  if (const HolderInfo* const freeze = state ? freeze_of(*state) : nullptr) {
    Log(Verbosity::normal).notice(printable(name.text()) + " is " + freeze_text(*freeze, state->ttl, wall_clock_ms()));
  }
}

Result<RunEnd> execute(const RawHistory& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto opened, open_server(raw.server, call.environment));
  ASSIGN_OR_RETURN(const auto names, known_locks(opened, raw.keys, call.operands));
  ASSIGN_OR_RETURN(const auto all, names.empty() ? Result(std::vector<LockHistory>())
                                                 : opened.store->past_runs(names, LogPart::all, opened.per_answer()));
  std::vector<ShownRun> wanted;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const PastRun& run : all[i].runs) {
      if (is_wanted(run, raw)) {
        wanted.push_back({&names[i], &run});
      }
    }
    tell_bound(names[i], all[i], raw);
  }
  if (wanted.empty()) {
    tell_none(names, raw);
  }
  const bool is_of_one = names_one_lock(raw, call);
  if (is_of_one && !raw.json) {
    tell_freeze(names.front(), opened);
  }
  print_runs(wanted, raw, call.environment, !is_of_one);
  return ended(wanted.empty() ? ExitCode::no : ExitCode::ok);
}

constexpr OptionRow<RawKeys> history_keys_row =
    key_row("name of a lock; may be given several times (all that the server knows)");
constexpr OptionRow<RawHistory> history_rows[] = {
    {{.names = "--since",
      .value = "DUR|TIME",
      .help = "only runs that ended within DUR, or after TIME, such as 22:00 (the last one), 2026-11-26, '2026-11-26 "
              "22:00' or 2026-11-26T21:00Z"},
     read_since},
    {{.names = "--failed", .help = "only runs that failed, timed out, lost the lock or were stopped by force-unlock"},
     set<&RawHistory::failed>},
};

void add_history_options(OptionTable& options, RawHistory& raw)
{
  add_key_options(options, raw.keys, history_keys_row);
  options.add(history_rows, raw);
  options.add(json_lines_row, raw.json);
  options.add(color_row, raw.color);
  add_utc_option(options);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb history_verb{
    .name = "history",
    .summary = "print what became of the runs of locks, and which were skipped",
    .synopsis = "[OPTION...] [[-k] KEY | PATTERN]...",
    .examples = {"rlock history -k nightly", "rlock history --failed --since 12h",
                 "rlock history --since '2026-11-26 22:00' 'backup:*'",
                 "rlock history --json nightly | grep '\"failed\"'"},
    .own_exits = {{ExitCode::ok, "printed, the last run first"},
                  {ExitCode::no,
                   "the server knows of no such run that is over; standard error says so, unless --json is given"}},
    .add_options = bound<RawHistory, add_history_options, execute>,
};

}  // namespace rlock::cli
