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
  RawForm form;
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

Result<RunEnd> act(const RawStatus& typed, const Call& call)
{
  const Result<std::vector<LockName>> names = resolve_keys(typed.keys, call.operands);
  if (!names) {
    return names.error();
  }
  const Result<Form> form = resolve_form(typed.form);
  if (!form) {
    return form.error();
  }
  const Result<OpenedStore> opened = open_typed(typed.server, call.environment);
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
    if (*form == Form::prometheus) {
      states.push_back(*state);  // each family of them stands together
      continue;
    }
    print(*form == Form::json ? status_json(*state) : show_status(*state, wall_clock_ms()));
  }
  if (*form == Form::prometheus) {
    print(prometheus_text(states, wall_clock_ms()));
  }
  const bool is_scraped =
      *form == Form::prometheus;  // a collector takes another status for a failure and publishes nothing
  return ended(all_held || is_scraped ? ExitCode::ok : ExitCode::no);
}

Act describe_verb(Options& options)
{
  auto typed = std::make_shared<RawStatus>();
  describe_keys(options, typed->keys);
  describe_form(options, typed->form);
  describe_server(options, typed->server);
  return [typed](const Call& call) { return act(*typed, call); };
}

}  // namespace

const Verb status_verb{
    .name = "status",
    .summary = "show who holds a lock, doing what, and who waits for it",
    .synopsis = "[OPTION...] [-k] KEY...",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .describe = describe_verb,
};

}  // namespace rlock::cli
