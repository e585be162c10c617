// SPDX-License-Identifier: Apache-2.0
// rlock release: let go of a lock that is still ours.
#include "cli/options/token_lock.h"
#include "cli/verbs/table.h"

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

Result<RunEnd> act(const RawClaim& typed, const Call& call)
{
  const Result<Claim> claim = resolve_claim(typed, call.operands, call.environment);
  if (!claim) {
    return claim.error();
  }
  return release_all(*claim, typed, call);
}

Act describe_verb(Options& options)
{
  auto typed = std::make_shared<RawClaim>();
  describe_claim(options, *typed);
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
