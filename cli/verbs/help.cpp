// SPDX-License-Identifier: Apache-2.0
#include "cli/help/help.h"
#include "cli/help/manual.h"
#include "cli/options/options.h"
#include "cli/output/output.h"
#include "cli/servers_topic.h"
#include "cli/verbs/table.h"

#include <array>
#include <memory>

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 3> examples{"rlock help run", "rlock help servers", "rlock help --mdoc run"};
constexpr std::array exits{ExitLine{"0", "printed"}, usage_exit, output_exit};

Result<RunEnd> execute(bool mdoc, const Call& call)
{
  if (call.operands.empty()) {
    print(mdoc ? mdoc_of_verbs() : overview());
    return ended(ExitCode::ok);
  }
  if (call.operands.size() > 1) {
    return usage("one verb at a time (try rlock help run)");
  }
  if (call.operands.front() == servers_topic) {
    print(mdoc ? mdoc_of_servers() : help_of_servers());
    return ended(ExitCode::ok);
  }
  const Result<const Verb*> verb = find_verb(call.operands.front());
  if (!verb) {
    return verb.error();
  }
  print(mdoc ? mdoc_of(**verb) : help_of(**verb));
  return ended(ExitCode::ok);
}

VerbAction add_options(Options& options)
{
  auto mdoc = std::make_shared<bool>(false);
  options.flag("--mdoc", *mdoc, "as a part of a manual page, in mdoc(7)");
  return [mdoc](const Call& call) { return execute(*mdoc, call); };
}

}  // namespace

const Verb help_verb{
    .name = "help",
    .summary = "show how to use rlock, one of its verbs, or servers",
    .synopsis = "[OPTION...] [VERB | servers]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
