// SPDX-License-Identifier: Apache-2.0
// rlock renew: push back the expiry of a lock that is still ours.
#include "cli/options/limits.h"
#include "cli/options/token_lock.h"
#include "cli/verbs/table.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawRenew {
  RawTokenLock token_lock;
  Text lease;
};

constexpr const char* lease_variable = "RLOCK_LEASE_MS";
constexpr Millis usual_lease{30'000};

constexpr std::array<std::string_view, 2> examples{
    "rlock renew --lease 5m",
    "rlock renew -k stock --token 8743c9c0-0795-4907-87fd-6c719a6b4586:1",
};

constexpr std::array exits{
    ExitLine{"0", "renewed; a lease is never made shorter"},
    ExitLine{"1", "not ours; stderr says what became of it"},
    usage_exit,
    server_exit,
    output_exit,
    refused_exit,
    config_exit,
};

Result<Millis> resolve_lease(const RawRenew& raw, const Environment& environment)
{
  if (raw.lease) {
    return resolve_duration(*raw.lease, fixed_lease_rule);
  }
  const std::string_view inherited = environment.value(lease_variable);
  if (inherited.empty()) {
    return usual_lease;
  }
  Result<Millis> lease = resolve_duration(std::string(inherited) + "ms", fixed_lease_rule);
  return lease ? std::move(lease)
               : Error{ErrorCode::config, std::string(lease_variable) + ": '" + printable(inherited) +
                                              "' is no number of milliseconds for a lease (try --lease 5m)"};
}

Result<RunEnd> execute(const RawRenew& raw, const Call& call)
{
  const Result<TokenLock> token_lock = resolve_token_lock(raw.token_lock, call.operands, call.environment);
  if (!token_lock) {
    return token_lock.error();
  }
  const Result<Millis> lease = resolve_lease(raw, call.environment);
  if (!lease) {
    return lease.error();
  }
  return renew_token_lock(*token_lock, *lease, raw.token_lock, call);
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawRenew>();
  add_token_lock_options(options, raw->token_lock);
  options.text("--lease", raw->lease, "DUR", "how long from now (else RLOCK_LEASE_MS, 30s)");
  options.flag("--json", raw->token_lock.json, "one JSON object a line, when it is ours");
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb renew_verb{
    .name = "renew",
    .summary = "push back the expiry of a lock that is still ours",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
