// SPDX-License-Identifier: Apache-2.0
#include "cli/options/notify.h"

namespace rlock::cli {

void add_notify_option(Options& options, Text& raw, const char* help) { options.text("--notify", raw, "CMD", help); }

Result<std::string> resolve_notify(const Text& raw)
{
  if (raw && raw->empty()) {
    return usage("--notify: the command is empty (try --notify 'logger \"$RLOCK_MESSAGE\"')");
  }
  return raw.value_or("");
}

}  // namespace rlock::cli
