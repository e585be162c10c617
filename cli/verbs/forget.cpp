// SPDX-License-Identifier: Apache-2.0
// rlock forget: drop the success that once remembers.
#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"
#include "lock/abilities.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawForget {
  RawKeys keys;
  RawServer server;
  bool json = false;
};

constexpr std::array<std::string_view, 1> examples{"rlock forget -k migrate:v42"};

constexpr std::array exits{
    ExitLine{"0", "forgotten: the next rlock once runs its command"},
    ExitLine{"1", "there was no success to forget"},
    usage_exit,
    server_exit,
    output_exit,
    refused_exit,
    config_exit,
};

Result<RunEnd> execute(const RawForget& raw, const Call& call)
{
  const Result<LockName> name = resolve_key(raw.keys, call.operands);
  if (!name) {
    return name.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  OnceMemory* const memory = opened->store->once_memory();
  if (memory == nullptr) {
    return not_offered(forget_verb.name, opened->server);
  }
  const Result<bool> forgotten = memory->forget_success(*name, opened->limit());
  if (!forgotten) {
    return forgotten.error();
  }
  if (raw.json) {
    print(forget_json(*name, *forgotten));
  }
  return ended(*forgotten ? ExitCode::ok : ExitCode::no);
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawForget>();
  add_key_options(options, raw->keys);
  options.flag("--json", raw->json, "one JSON object a line");
  add_server_options(options, raw->server);
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb forget_verb{
    .name = "forget",
    .summary = "forget that a command has succeeded, so that once runs it again",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
