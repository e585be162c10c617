// SPDX-License-Identifier: Apache-2.0
// rlock renew: push back the expiry of a lock that is still ours.
#include "cli/options/limits.h"
#include "cli/options/token_lock.h"
#include "cli/verbs/table.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawRenew {
  RawClaim claim;
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

Result<Millis> resolve_lease(const RawRenew& typed, const Environment& environment)
{
  if (typed.lease) {
    return resolve_duration(*typed.lease, fixed_lease_rule);
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

Result<RunEnd> act(const RawRenew& typed, const Call& call)
{
  const Result<Claim> claim = resolve_claim(typed.claim, call.operands, call.environment);
  if (!claim) {
    return claim.error();
  }
  const Result<Millis> lease = resolve_lease(typed, call.environment);
  if (!lease) {
    return lease.error();
  }
  return affirm(*claim, *lease, typed.claim, call);
}

Act describe_verb(Options& options)
{
  auto typed = std::make_shared<RawRenew>();
  describe_claim(options, typed->claim);
  options.text("--lease", typed->lease, "DUR", "how long from now (else RLOCK_LEASE_MS, 30s)");
  options.flag("--json", typed->claim.json, "one JSON object a line, when it is ours");
  return [typed](const Call& call) { return act(*typed, call); };
}

}  // namespace

const Verb renew_verb{
    .name = "renew",
    .summary = "push back the expiry of a lock that is still ours",
    .synopsis = "[[-k] KEY] [OPTION...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .describe = describe_verb,
};

}  // namespace rlock::cli
