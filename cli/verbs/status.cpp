// SPDX-License-Identifier: Apache-2.0
// rlock status: who holds it, since when, doing what, how long still, who waits.
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
    ExitLine{"0", "held, all of them; with -o prometheus whether held or free"},
    ExitLine{"1", "free, at least one"},
    usage_exit,
    server_exit,
    output_exit,
    refused_exit,
    config_exit,
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
      states.push_back(*state);  // each family of them stands together
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

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawStatus>();
  add_key_options(options, raw->keys);
  add_output_format_options(options, raw->output_format);
  add_server_options(options, raw->server);
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb status_verb{
    .name = "status",
    .summary = "show who holds a lock, doing what, and who waits for it",
    .synopsis = "[OPTION...] [-k] KEY...",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
