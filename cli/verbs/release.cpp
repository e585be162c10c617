// SPDX-License-Identifier: Apache-2.0
// rlock release: releases a lock by its token.
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
    ExitLine{ExitCode::ok, "released, now or before; its keeper ends silently"},
    ExitLine{ExitCode::no, token_not_held},
};

Result<RunEnd> execute(const RawTokenLock& raw, const Call& call)
{
  const Result<TokenLock> token_lock = resolve_token_lock(raw, call.operands, call.environment);
  if (!token_lock) {
    return token_lock.error();
  }
  return release_token_lock(*token_lock, raw, call);
}

}  // namespace

const Verb release_verb{
    .name = "release",
    .summary = "release a lock by its token",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawTokenLock, add_token_lock_options, execute>,
};

}  // namespace rlock::cli
