// SPDX-License-Identifier: Apache-2.0
#include "cli/options/history.h"

#include "base/defaults.h"
#include "base/duration.h"

#include <algorithm>

namespace rlock::cli {
namespace {

constexpr DurationRule history_rule{"--history", Millis{0}, longest_duration, "30d"};

}  // namespace

void add_history_option(Options& options, Text& raw)
{
  options.text("--history", raw, "DUR", HelpText([] {
                 return "how long, at least, the server keeps what happened to the lock, for rlock history, status and "
                        "events: its last " +
                        std::to_string(event_count) + " events (" + show(default_history) + ")";
               }));
}

Result<std::optional<Millis>> resolve_history(const Text& raw)
{
  if (!raw) {
    return std::optional<Millis>{};
  }
  const Result<Millis> history = resolve_duration(*raw, history_rule);
  // A repeated release looks for the first one in the log.
  return history ? Result(std::optional(std::max(*history, default_history)))
                 : Result<std::optional<Millis>>(history.error());
}

}  // namespace rlock::cli
