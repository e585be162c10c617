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

Result<RunEnd> execute(const RawTokenLock& raw, const Call& call)
{
  const Result<TokenLock> token_lock = resolve_token_lock(raw, call.operands, call.environment);
  if (!token_lock) {
    return token_lock.error();
  }
  return renew_token_lock(*token_lock, Millis{0}, raw, call);
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawTokenLock>();
  add_token_lock_options(options, *raw);
  options.flag("--json", raw->json, "one JSON object a line, when it is ours");
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb check_verb{
    .name = "check",
    .summary = "ask whether a lock is still ours; inside a job, its own",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
