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

Result<RunEnd> execute(const RawTokenLock& raw, const Call& call)
{
  const Result<TokenLock> token_lock = resolve_token_lock(raw, call.operands, call.environment);
  if (!token_lock) {
    return token_lock.error();
  }
  return release_token_lock(*token_lock, raw, call);
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawTokenLock>();
  add_token_lock_options(options, *raw);
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb release_verb{
    .name = "release",
    .summary = "let go of a lock that is still ours",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
