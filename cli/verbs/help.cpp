// SPDX-License-Identifier: Apache-2.0
// rlock help: prints help and the parts of the manual pages.
#include "cli/help/help.h"
#include "cli/help/manual.h"
#include "cli/help/topics.h"
#include "cli/options/options.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"

#include <array>
#include <memory>

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 3> examples{"rlock help run", "rlock help servers", "rlock help --mdoc run"};
constexpr std::array exits{ExitLine{ExitCode::ok, "printed"}};

struct RawHelp {
  bool mdoc = false;
};

Result<RunEnd> execute(const RawHelp& raw, const Call& call)
{
  if (call.operands.empty()) {
    print(raw.mdoc ? mdoc_of_verbs() : overview());
    return ended(ExitCode::ok);
  }
  if (call.operands.size() > 1) {
    return usage("one verb at a time (try rlock help run)");
  }
  if (const Topic* topic = find_topic(call.operands.front())) {
    print(raw.mdoc ? topic->mdoc() : topic->help());
    return ended(ExitCode::ok);
  }
  const Result<const Verb*> verb = find_verb(call.operands.front());
  if (!verb) {
    return verb.error();
  }
  print(raw.mdoc ? mdoc_of(**verb) : help_of(**verb));
  return ended(ExitCode::ok);
}

void add_help_options(Options& options, RawHelp& raw)
{
  options.flag("--mdoc", raw.mdoc, "print it as a part of a manual page, in mdoc(7)");
}

}  // namespace

const Verb help_verb{
    .name = "help",
    .summary = "show how to use rlock, a verb, or a topic",
    .synopsis = "[OPTION...] [VERB | servers | json]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = printing_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawHelp, add_help_options, execute>,
};

}  // namespace rlock::cli
