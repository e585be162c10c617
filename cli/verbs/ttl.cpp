// SPDX-License-Identifier: Apache-2.0
// rlock ttl: bare milliseconds, for scripts.
#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawTtl {
  RawKeys keys;
  RawServer server;
  bool json = false;
};

constexpr std::array<std::string_view, 1> examples{"rlock ttl -k stock"};

constexpr std::array exits{
    ExitLine{"0", "held; -1 stands for a lock that never expires (null in JSON)"},
    ExitLine{"1", "free, and 0 is printed"},
    usage_exit,
    server_exit,
    output_exit,
    refused_exit,
    config_exit,
};

// As redis-cli's PTTL says it, but for the free lock.
std::string bare(const LockState& state)
{
  if (!state.held()) {
    return "0\n";
  }
  return state.ttl ? std::to_string(state.ttl->count()) + "\n" : "-1\n";
}

Result<RunEnd> execute(const RawTtl& raw, const Call& call)
{
  const Result<LockName> name = resolve_key(raw.keys, call.operands);
  if (!name) {
    return name.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  const Result<LockState> state = opened->store->inspect(*name, opened->limit());
  if (!state) {
    return state.error();
  }
  print(raw.json ? ttl_json(*state) : bare(*state));
  return ended(state->held() ? ExitCode::ok : ExitCode::no);
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawTtl>();
  add_key_options(options, raw->keys);
  options.flag("--json", raw->json, "one JSON object a line");
  add_server_options(options, raw->server);
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb ttl_verb{
    .name = "ttl",
    .summary = "print how many milliseconds a lock still has",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
