// SPDX-License-Identifier: Apache-2.0
#include "cli/options/lock_rules.h"

#include "process/signals.h"

namespace rlock::cli {

Result<Millis> resolve_ttl(const Text& raw) { return raw ? resolve_duration(*raw, ttl_rule) : default_ttl; }

Result<int> resolve_busy_code(const Text& raw, ExitCode default_code)
{
  return raw ? resolve_number(*raw, busy_code_rule) : static_cast<int>(default_code);
}

Result<int> resolve_signal(std::string_view raw)
{
  const std::optional<int> signal = signal_number(raw);
  if (!signal) {
    return usage("--signal: '" + printable(raw) + "' is not a signal (try --signal TERM)");
  }
  return *signal;
}

}  // namespace rlock::cli
