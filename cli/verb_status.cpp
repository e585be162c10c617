// SPDX-License-Identifier: Apache-2.0
// rlock status: who holds it, since when, doing what, how long still, who waits.
#include "cli/json.h"
#include "cli/keys.h"
#include "cli/output.h"
#include "cli/server.h"
#include "cli/show.h"
#include "cli/verbs.h"

#include <CLI/CLI.hpp>

#include <array>

namespace rlock::cli {
namespace {

struct TypedStatus {
  TypedKeys keys;
  TypedServer server;
  bool json = false;
};

constexpr std::array<std::string_view, 2> examples{
    "rlock status -k stock",
    "rlock status --json stock billing",
};

constexpr std::array exits{
    ExitLine{"0", "held, all of them"},
    ExitLine{"1", "free, at least one"},
    usage_exit,
    server_exit,
    output_exit,
    refused_exit,
    config_exit,
};

Result<RunEnd> act(const TypedStatus& typed, const Call& call)
{
  const Result<std::vector<LockName>> names = meant_keys(typed.keys, call.operands);
  if (!names) {
    return names.error();
  }
  const Result<OpenedStore> opened = open_typed(typed.server, call.environment);
  if (!opened) {
    return opened.error();
  }

  bool all_held = true;
  for (const LockName& name : *names) {
    const Result<LockState> state = opened->store->inspect(name, opened->limit());
    if (!state) {
      return state.error();
    }
    print(typed.json ? status_json(*state) : show_status(*state, wall_clock_ms()));
    all_held = all_held && state->held();
  }
  return ended(all_held ? ExitCode::ok : ExitCode::no);
}

Act describe_verb(CLI::App& app)
{
  auto typed = std::make_shared<TypedStatus>();
  describe_keys(app, typed->keys);
  add_flag(app, "--json", typed->json, "one JSON object a line");
  describe_server(app, typed->server);
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
