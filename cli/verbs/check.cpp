// SPDX-License-Identifier: Apache-2.0
// rlock check: whether a lock is still ours.
#include "cli/options/token_lock.h"
#include "cli/verbs/table.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 2> examples{
    "rlock check || exit 1",
    "rlock check -k stock --token 8743c9c0-0795-4907-87fd-6c719a6b4586:1",
};

constexpr std::array exits{
    ExitLine{"0", "it was ours a moment ago"},
    ExitLine{"1", "not ours; stderr says what became of it"},
    usage_exit,
    server_exit,
    output_exit,
    refused_exit,
    config_exit,
};

Result<RunEnd> act(const RawClaim& typed, const Call& call)
{
  const Result<Claim> claim = resolve_claim(typed, call.operands, call.environment);
  if (!claim) {
    return claim.error();
  }
  return affirm(*claim, Millis{0}, typed, call);
}

Act describe_verb(Options& options)
{
  auto typed = std::make_shared<RawClaim>();
  describe_claim(options, *typed);
  options.flag("--json", typed->json, "one JSON object a line, when it is ours");
  return [typed](const Call& call) { return act(*typed, call); };
}

}  // namespace

const Verb check_verb{
    .name = "check",
    .summary = "ask whether a lock is still ours; inside a job, its own",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .describe = describe_verb,
};

}  // namespace rlock::cli
