// SPDX-License-Identifier: Apache-2.0
// rlock list: prints the locks that are held now.
#include "cli/options/keys.h"
#include "cli/options/output_format.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/prometheus.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "lock/abilities.h"

#include <algorithm>
#include <array>

namespace rlock::cli {
namespace {

struct RawList {
  RawKeys keys;
  RawServer server;
  RawOutputFormat output_format;
};

constexpr std::array<std::string_view, 2> examples{
    "rlock list",
    "rlock list --json 'billing:*'",
};

constexpr std::array exits{
    ExitLine{"0", "at least one lock is held; with -o prometheus always"},
    ExitLine{"1", "no lock is held, and nothing is printed"},
};

void print_held(const std::vector<LockState>& states, OutputFormat output_format)
{
  if (output_format != OutputFormat::json) {
    print(output_format == OutputFormat::prometheus ? prometheus_text(states, wall_clock_ms())
                                                    : show_list(states, wall_clock_ms()));
    return;
  }
  for (const LockState& state : states) {
    if (state.held()) {
      print(status_json(state));
    }
  }
}

Result<RunEnd> execute(const RawList& raw, const Call& call)
{
  if (call.operands.size() > 1) {
    return usage("more than one pattern; quote the pattern if the shell expands it (try rlock list 'billing:*')");
  }
  const std::string pattern = resolve_pattern(raw.keys, call.operands.empty() ? "*" : call.operands.front());
  const Result<OutputFormat> output_format = resolve_output_format(raw.output_format);
  if (!output_format) {
    return output_format.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  LockListing* const listing = opened->store->listing();
  if (listing == nullptr) {
    return not_offered(list_verb.name, opened->server);
  }
  const Result<std::vector<LockState>> states = listing->list(pattern, opened->per_answer());
  if (!states) {
    return states.error();
  }
  print_held(*states, *output_format);
  const bool any_held =
      std::any_of(states->begin(), states->end(), [](const LockState& state) { return state.held(); });
  return ended(any_held || *output_format == OutputFormat::prometheus ? ExitCode::ok : ExitCode::no);
}

void add_list_options(Options& options, RawList& raw)
{
  add_prefix_option(options, raw.keys);
  add_output_format_options(options, raw.output_format);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb list_verb{
    .name = "list",
    .summary = "list the locks that are held, all or those that match a glob",
    .synopsis = "[OPTION...] [PATTERN]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawList, add_list_options, execute>,
};

}  // namespace rlock::cli
