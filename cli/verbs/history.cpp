// SPDX-License-Identifier: Apache-2.0
// rlock history: prints the runs of a lock that are over, and those that were skipped.
#include "base/log.h"
#include "base/text.h"
#include "cli/options/color.h"
#include "cli/options/one_lock.h"
#include "cli/options/output_format.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "lock/abilities.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawHistory {
  RawOneLock lock;
  bool json = false;
  Text color;
};

constexpr std::array<std::string_view, 2> examples{
    "rlock history -k nightly",
    "rlock history --json nightly | grep '\"failed\"'",
};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "printed, the last run first"},
    ExitLine{ExitCode::no, "the server knows of no run that is over; standard error says so, unless --json is given"},
};

Result<RunEnd> execute(const RawHistory& raw, const Call& call)
{
  const Result<Colours> colours = resolve_colours(raw.color, call.environment);
  if (!colours) {
    return colours.error();
  }
  const Result<OneLock> lock = open_lock(raw.lock, call);
  if (!lock) {
    return lock.error();
  }
  RunHistory* const history = lock->opened.store->run_history();
  if (history == nullptr) {
    return not_offered(history_verb.name, lock->opened.server);
  }
  const auto all = history->past_runs({&lock->name, 1}, LogPart::all, lock->opened.per_answer());
  if (!all) {
    return all.error();
  }
  const std::vector<PastRun>& runs = all->front();
  if (!raw.json && runs.empty()) {
    Log(Verbosity::normal)
        .notice("no run of " + printable(lock->name.text()) +
                " is known; the server keeps runs for an hour, or as long as --history of the run says");
  }
  if (!raw.json) {
    print(show_history(runs, *colours));
  }
  for (const PastRun& run : raw.json ? runs : std::vector<PastRun>{}) {
    print(run_json(lock->name, run));
  }
  return ended(runs.empty() ? ExitCode::no : ExitCode::ok);
}

void add_history_options(Options& options, RawHistory& raw)
{
  add_key_options(options, raw.lock.keys);
  add_json_option(options, raw.json);
  add_color_option(options, raw.color);
  add_server_options(options, raw.lock.server);
}

}  // namespace

const Verb history_verb{
    .name = "history",
    .summary = "print what became of the runs of a lock, and which were skipped",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawHistory, add_history_options, execute>,
};

}  // namespace rlock::cli
