// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 1> examples{"rlock help run"};
constexpr std::array exits{ExitLine{"0", "printed"}, usage_exit, output_exit};

Result<RunEnd> act(const Call& call)
{
  if (call.operands.empty()) {
    print(overview());
    return ended(ExitCode::ok);
  }
  if (call.operands.size() > 1) {
    return usage("one verb at a time (try rlock help run)");
  }
  const Result<const Verb*> verb = find_verb(call.operands.front());
  if (!verb) {
    return verb.error();
  }
  print(help_of(**verb));
  return ended(ExitCode::ok);
}

Act describe_verb(CLI::App&) { return act; }

}  // namespace

const Verb help_verb{
    .name = "help",
    .summary = "show how to use rlock, or one of its verbs",
    .synopsis = "[VERB]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .describe = describe_verb,
};

}  // namespace rlock::cli
