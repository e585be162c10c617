// SPDX-License-Identifier: Apache-2.0
// rlock status: prints the holders of a lock, their commands and times, and the queue.
#include "cli/options/keys.h"
#include "cli/options/output_format.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/prometheus.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawStatus {
  RawKeys keys;
  RawServer server;
  RawOutputFormat output_format;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock status -k stock",
    "rlock status --json stock billing",
    "rlock status -o prometheus stock >locks.prom.new",
};

constexpr std::array exits{
    ExitLine{"0", "all of the locks are held; with -o prometheus always"},
    ExitLine{"1", "at least one is free"},
};

Result<RunEnd> execute(const RawStatus& raw, const Call& call)
{
  const Result<std::vector<LockName>> names = resolve_keys(raw.keys, call.operands);
  if (!names) {
    return names.error();
  }
  const Result<OutputFormat> output_format = resolve_output_format(raw.output_format);
  if (!output_format) {
    return output_format.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }

  bool all_held = true;
  std::vector<LockState> states;
  for (const LockName& name : *names) {
    const Result<LockState> state = opened->store->inspect(name, opened->limit());
    if (!state) {
      return state.error();
    }
    all_held = all_held && state->held();
    if (*output_format == OutputFormat::prometheus) {
      states.push_back(*state);  // printed together, by family
      continue;
    }
    print(*output_format == OutputFormat::json ? status_json(*state) : show_status(*state, wall_clock_ms()));
  }
  if (*output_format == OutputFormat::prometheus) {
    print(prometheus_text(states, wall_clock_ms()));
  }
  const bool is_scraped =
      *output_format ==
      OutputFormat::prometheus;  // a collector takes another status for a failure and publishes nothing
  return ended(all_held || is_scraped ? ExitCode::ok : ExitCode::no);
}

void add_status_options(Options& options, RawStatus& raw)
{
  add_key_options(options, raw.keys);
  add_output_format_options(options, raw.output_format);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb status_verb{
    .name = "status",
    .summary = "show who holds a lock, doing what, and who waits for it",
    .synopsis = "[OPTION...] [-k] KEY...",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawStatus, add_status_options, execute>,
};

}  // namespace rlock::cli
