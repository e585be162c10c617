// SPDX-License-Identifier: Apache-2.0
// rlock watch: shows the locks of a server live.
#include "base/duration.h"
#include "cli/options/color.h"
#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/options/sort.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "cli/verbs/watch_screen.h"
#include "lock/abilities.h"
#include "process/signals.h"

#include <array>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr DurationRule interval_rule{"--interval", 100ms, std::chrono::hours{24}, "1s"};
constexpr Millis default_interval{1000};

struct RawWatch {
  RawKeys keys;
  RawServer server;
  Text interval;
  Text sort;
  Text color;
  bool json = false;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock watch",
    "rlock watch -S redis://db1 'deploy:*'",
    "rlock watch --json --interval 10s >>locks.jsonl",
};

constexpr std::array keys{
    KeyLine{"q", "quit"},
    KeyLine{"up, down", "select a lock; a screen of 20 rows or more shows its details"},
    KeyLine{"Enter, Esc",
            "its details and history on the whole screen, also after the lock is free; back to all locks"},
    KeyLine{"f", "after a question: what force-unlock does, which stops the job first"},
    KeyLine{"z",
            "after a question: freeze the lock, which is then held for two hours without a job, after the jobs that "
            "run or wait now; again: thaw it, or give up a freeze that waits"},
    KeyLine{"k a t w r", "sort by key, age, ttl, number of waiters, rate; again: in reverse order"},
    KeyLine{"/", "filter by a part of the key, the holder or the command"},
    KeyLine{"Ctrl-Z", "suspend"},
};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "the user pressed q, or the reader of the pipe ended"},
};

std::string all_json(const std::vector<LockState>& states)
{
  std::string lines;
  for (const LockState& state : states) {
    lines += status_json(state);
  }
  return lines;
}

std::string all_text(const std::vector<LockState>& states)
{
  return (states.empty() ? "no lock is held\n" : show_list(states, wall_clock_ms())) + "\n";
}

// Prints lines for a file or a pipe, until a signal comes or the reader ends.
Result<RunEnd> print_lines(bool json, WatchedLocks& locks, const Clock& clock, Signals& signals)
{
  for (;;) {
    if (const auto added = json ? locks.add_last_runs() : Result(Done{}); !added) {
      return added.error();
    }
    print(json ? all_json(locks.states()) : all_text(locks.states()));
    if (const auto printed = finish_output(); !printed) {
      return drop_unread_output() ? Result<RunEnd>(ended(ExitCode::ok)) : printed.error();
    }
    if (clock.sleep_until(locks.next_refresh(), signals.stop()) == Wake::due) {
      locks.refresh_when_due();
    }
    if (signals.stop().requested()) {
      return die_of_signal(signals);
    }
    if (locks.error()) {
      return *locks.error();
    }
  }
}

Result<RunEnd> execute(const RawWatch& raw, const Call& call)
{
  if (call.operands.size() > 1) {
    return several_patterns(watch_verb.name);
  }
  Millis interval = default_interval;
  WatchOptions options;
  const Result<Done> given =
      first_error({assign(raw.interval ? resolve_duration(*raw.interval, interval_rule) : default_interval, interval),
                   assign(resolve_sort(raw.sort), options.sort),
                   assign(resolve_colours(raw.color, call.environment), options.colours)});
  if (!given) {
    return given.error();
  }
  const auto server = resolve_server(raw.server, call.environment);
  if (!server) {
    return server.error();
  }
  Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  if (opened->store->listing() == nullptr) {
    return not_offered(watch_verb.name, opened->server);
  }
  options.server = server->shown();
  call.signals.block();
  WatchedLocks locks(*opened, resolve_pattern(raw.keys, call.operands.empty() ? "*" : call.operands.front()), interval,
                     call.signals.stop());
  if (const auto begun = locks.begin(); !begun) {
    return call.signals.stop().requested() ? Result(die_of_signal(call.signals)) : Result<RunEnd>(begun.error());
  }
  if (raw.json || !Screen::is_there()) {
    return print_lines(raw.json, locks, *opened->clock, call.signals);
  }
  return WatchScreen(locks, *opened->clock, options, raw.server, call).run();
}

void add_watch_options(Options& options, RawWatch& raw)
{
  add_prefix_option(options, raw.keys);
  options.text("--interval", raw.interval, "DUR",
               {"time between two requests to the server; new locks may show later where the server has many keys",
                default_interval});
  add_sort_option(options, raw.sort);
  add_color_option(options, raw.color);
  options.flag("--json", raw.json, "one JSON object a line, for every lock each time");
  add_server_options(options, raw.server);
}

}  // namespace

const Verb watch_verb{
    .name = "watch",
    .summary = "show locks, holders and queues live",
    .synopsis = "[OPTION...] [PATTERN]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .keys = keys,
    .add_options = bound<RawWatch, add_watch_options, execute>,
};

}  // namespace rlock::cli
