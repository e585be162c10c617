// SPDX-License-Identifier: Apache-2.0
// rlock release: let go of a lock that is still ours.
#include "cli/claim.h"
#include "cli/verbs.h"
#include "runner/door.h"

#include <CLI/CLI.hpp>

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 2> examples{
    "rlock release",
    "rlock release -k stock --token 8743c9c0-0795-4907-87fd-6c719a6b4586:1",
};

constexpr std::array exits{
    ExitLine{"0", "released, now or before; its keeper ends without a word"},
    ExitLine{"1", "not ours; stderr says what became of it"},
    usage_exit,
    server_exit,
    refused_exit,
    config_exit,
};

Result<RunEnd> act(const TypedClaim& typed, const Call& call)
{
  const Result<Claim> claim = meant_claim(typed, call.operands, call.environment);
  if (!claim) {
    return claim.error();
  }
  const Result<OpenedStore> opened = open_typed(typed.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  const Fd at_the_door = knock(claim->hold);  // until we return
  const Result<LockSpec> spec = spec_of(*claim, Millis{0}, *opened);
  if (!spec) {
    return spec.error();
  }
  const Result<Release> released =
      opened->store->release(*spec, claim->hold, {}, opened->limit());
  if (!released) {
    return released.error();
  }
  if (const auto* lost = std::get_if<NotOurs>(&*released)) {
    return not_ours(*claim, what_became_of(*lost), typed);
  }
  if (std::holds_alternative<Left>(*released)) {
    return not_ours(*claim, "it was still waited for", typed);
  }
  return ended(ExitCode::ok);
}

Act describe_verb(CLI::App& app)
{
  auto typed = std::make_shared<TypedClaim>();
  describe_claim(app, *typed);
  return [typed](const Call& call) { return act(*typed, call); };
}

}  // namespace

const Verb release_verb{
    .name = "release",
    .summary = "let go of a lock that is still ours",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .describe = describe_verb,
};

}  // namespace rlock::cli
