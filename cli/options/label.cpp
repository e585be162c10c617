// SPDX-License-Identifier: Apache-2.0
#include "cli/options/label.h"

#include "lock/holder.h"

namespace rlock::cli {

void add_label_option(Options& options, Text& raw)
{
  options.text("--label", raw, "TEXT",
               [] { return "text that status and watch show, at most " + std::to_string(longest_label) + " bytes"; });
}

Result<std::string> resolve_label(const Text& raw)
{
  const std::string label = raw.value_or("");
  if (label.size() > longest_label) {
    return usage("--label: the text has " + std::to_string(label.size()) + " bytes, at most " +
                 std::to_string(longest_label) + " (shorten it)");
  }
  return label;
}

}  // namespace rlock::cli
