// SPDX-License-Identifier: Apache-2.0
#include "cli/help/version.h"
#include "cli/options/output_format.h"
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
constexpr std::array exits{ExitLine{ExitCode::ok, "printed"}};

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
    .examples = examples,
    .own_exits = exits,
    .common_exits = printing_codes,
    .operands = Operands::none,
    .add_options = bound<RawVersion, add_version_options, execute>,
};

}  // namespace rlock::cli
