// SPDX-License-Identifier: Apache-2.0
// rlock renew: renews a lock by its token.
#include "base/duration.h"
#include "cli/options/lock_rules.h"
#include "cli/options/token_lock.h"
#include "cli/verbs/table.h"
#include "run/environment.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawRenew {
  RawTokenLock lock;
  Text lease;
};

constexpr std::array<std::string_view, 2> examples{
    "rlock renew --lease 5m",
    "rlock renew -k stock --token 8743c9c0-0795-4907-87fd-6c719a6b4586:1",
};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "renewed; rlock never makes a lease shorter"},
    ExitLine{ExitCode::no, token_not_held},
};

Result<Millis> resolve_lease(const RawRenew& raw, const Environment& environment)
{
  if (raw.lease) {
    return resolve_duration(*raw.lease, fixed_lease_rule);
  }
  const std::string_view inherited = environment.value(lease_variable);
  if (inherited.empty()) {
    return default_ttl;
  }
  Result<Millis> lease = resolve_duration(std::string(inherited) + "ms", fixed_lease_rule);
  return lease ? std::move(lease)
               : Error{ErrorCode::config, std::string(lease_variable) + ": '" + printable(inherited) +
                                              "' is no lease in milliseconds (try --lease 5m)"};
}

Result<RunEnd> execute(const RawRenew& raw, const Call& call)
{
  const Result<TokenLock> token_lock = resolve_token_lock(raw.lock, call.operands, call.environment);
  if (!token_lock) {
    return token_lock.error();
  }
  const Result<Millis> lease = resolve_lease(raw, call.environment);
  if (!lease) {
    return lease.error();
  }
  return renew_token_lock(*token_lock, *lease, raw.lock, call);
}

void add_renew_options(Options& options, RawRenew& raw)
{
  add_token_lock_options(options, raw.lock);
  options.text("--lease", raw.lease, "DUR",
               [] { return "new length of the lease, from now (else RLOCK_LEASE_MS, " + show(default_ttl) + ")"; });
  options.flag("--json", raw.lock.json, json_when_held);
}

}  // namespace

const Verb renew_verb{
    .name = "renew",
    .summary = "renew a lock by its token",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawRenew, add_renew_options, execute>,
};

}  // namespace rlock::cli
