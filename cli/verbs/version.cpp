// SPDX-License-Identifier: Apache-2.0
#include "cli/help/version.h"
#include "cli/options/options.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"

#include <array>
#include <memory>

#ifndef RLOCK_VERSION
#define RLOCK_VERSION "dev"
#endif

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 1> examples{"rlock version"};
constexpr std::array exits{ExitLine{"0", "printed"}, usage_exit, output_exit};

VerbAction add_options(Options& options)
{
  auto json = std::make_shared<bool>(false);
  options.flag("--json", *json, "one JSON object a line");
  return [json](const Call&) -> Result<RunEnd> {
    *json ? print(version_json(RLOCK_VERSION)) : print_version();
    return ended(ExitCode::ok);
  };
}

}  // namespace

void print_version() { print("rlock " RLOCK_VERSION "\n"); }

const Verb version_verb{
    .name = "version",
    .summary = "print the version",
    .synopsis = "[--json]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::none,
    .add_options = add_options,
};

}  // namespace rlock::cli
