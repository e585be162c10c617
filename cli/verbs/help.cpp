// SPDX-License-Identifier: Apache-2.0
// rlock help: prints help and the parts of the manual pages.
#include "cli/help/help.h"
#include "cli/help/manual.h"
#include "cli/options/option_table.h"
#include "cli/options/output.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"

#include <array>
#include <memory>

#ifndef RLOCK_VERSION
#define RLOCK_VERSION "dev"
#endif

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 3> help_examples{"rlock help run", "rlock help servers",
                                                        "rlock help --mdoc run"};
constexpr std::array help_exits{ExitLine{"0", "printed"}};

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
    .examples = help_examples,
    .own_exits = help_exits,
    .common_exits = printing_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawHelp, add_help_options, execute>,
};

namespace {

constexpr std::array<std::string_view, 1> version_examples{"rlock version"};
constexpr std::array version_exits{ExitLine{"0", "printed"}};

struct RawVersion {
  bool json = false;
};

Result<RunEnd> execute(const RawVersion& raw, const Call&)
{
  raw.json ? print(version_json(RLOCK_VERSION)) : print_version();
  return ended(ExitCode::ok);
}

void add_version_options(Options& options, RawVersion& raw) { add_json_option(options, raw.json); }

}  // namespace

void print_version() { print("rlock " RLOCK_VERSION "\n"); }

const Verb version_verb{
    .name = "version",
    .summary = "print the version",
    .synopsis = "[--json]",
    .examples = version_examples,
    .own_exits = version_exits,
    .common_exits = printing_codes,
    .operands = Operands::none,
    .add_options = bound<RawVersion, add_version_options, execute>,
};

}  // namespace rlock::cli
