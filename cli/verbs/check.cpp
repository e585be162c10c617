// SPDX-License-Identifier: Apache-2.0
// rlock check: asks whether a token still holds its lock.
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
    ExitLine{ExitCode::ok, "the token held the lock a moment ago"},
    ExitLine{ExitCode::no, token_not_held},
};

Result<RunEnd> execute(const RawTokenLock& raw, const Call& call)
{
  const Result<TokenLock> token_lock = resolve_token_lock(raw, call.operands, call.environment);
  if (!token_lock) {
    return token_lock.error();
  }
  return renew_token_lock(*token_lock, Millis{0}, raw, call);
}

void add_check_options(Options& options, RawTokenLock& raw)
{
  add_token_lock_options(options, raw);
  options.flag("--json", raw.json, json_when_held);
}

}  // namespace

const Verb check_verb{
    .name = "check",
    .summary = "ask whether a token, or the job around, still holds its lock",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawTokenLock, add_check_options, execute>,
};

}  // namespace rlock::cli
