// SPDX-License-Identifier: Apache-2.0
// rlock help and version.
#include "cli/help/help.h"
#include "cli/help/manual.h"
#include "cli/options/option_table.h"
#include "cli/options/output.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "stores/open.h"

namespace rlock::cli {
namespace {

struct RawHelp {
  bool mdoc = false;
};

std::string_view verb_name_of(std::string_view word) { return word == flock_program ? flock_verb.name : word; }

Result<RunEnd> execute(const RawHelp& raw, const Call& call)
{
  if (call.operands.empty()) {
    print(raw.mdoc ? mdoc_of_verbs(all_verbs()) : overview(all_verbs()));
    return ended(ExitCode::ok);
  }
  if (call.operands.size() > 1) {
    return usage("one verb at a time (try rlock help run)");
  }
  if (const Topic* topic = find_topic(call.operands.front())) {
    print(raw.mdoc ? topic->mdoc() : topic->help());
    return ended(ExitCode::ok);
  }
  const Engine* const store = engine_named(call.operands.front());
  if (store != nullptr && !raw.mdoc) {
    print(help_of_store(*store));
    return ended(ExitCode::ok);
  }
  const ManualPage* const page = find_manual_page(call.operands.front());
  if (page != nullptr && !raw.mdoc) {
    print(help_of_manual_page(*page));
    return ended(ExitCode::ok);
  }
  ASSIGN_OR_RETURN(const auto verb, find_verb(verb_name_of(call.operands.front())));
  print(raw.mdoc ? mdoc_of(*verb) : help_of(*verb));
  return ended(ExitCode::ok);
}

constexpr OptionRow<bool> mdoc_row{{.names = "--mdoc", .help = "print it as a part of a manual page, in mdoc(7)"},
                                   read_value};

void add_help_options(OptionTable& options, RawHelp& raw) { options.add(mdoc_row, raw.mdoc); }

}  // namespace

const Verb help_verb{
    .name = "help",
    .summary = "show how to use rlock, a verb, or a topic",
    .synopsis = "[OPTION...] [VERB | servers | exits | json | STORE | PAGE]",
    .examples = {"rlock help run", "rlock help servers", "rlock help redis", "rlock help --mdoc run"},
    .own_exits = {{ExitCode::ok, "printed"}},
    .common_exits = printing_codes,
    .add_options = bound<RawHelp, add_help_options, execute>,
};

namespace {

struct RawVersion {
  bool json = false;
};

Result<RunEnd> execute(const RawVersion& raw, const Call&)
{
  std::vector<std::string_view> stores;
  std::string list;
  for (const Engine* const engine : built_engines()) {
    stores.push_back(engine->name);
    list += (list.empty() ? "" : ", ") + std::string(engine->name);
  }
  print(raw.json ? version_json(version(), stores) : "rlock " + std::string(version()) + "\nstores: " + list + "\n");
  return ended(ExitCode::ok);
}

void add_version_options(OptionTable& options, RawVersion& raw) { options.add(json_lines_row, raw.json); }

}  // namespace

const Verb version_verb{
    .name = "version",
    .summary = "print the version, and the stores that this program knows",
    .synopsis = "[--json]",
    .examples = {"rlock version"},
    .own_exits = {{ExitCode::ok, "printed"}},
    .common_exits = printing_codes,
    .operands = Operands::none,
    .add_options = bound<RawVersion, add_version_options, execute>,
};

}  // namespace rlock::cli
