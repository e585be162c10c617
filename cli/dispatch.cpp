// SPDX-License-Identifier: Apache-2.0
#include "cli/dispatch.h"

#include "base/text.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "cli/words.h"

#include <CLI/CLI.hpp>

namespace rlock::cli {
namespace {

Result<RunEnd> call(const Verb& verb, std::span<const std::string> args,
                    const Environment& environment, Signals& signals)
{
  CLI::App app;
  bool wants_help = false;
  const Act act = describe(verb, app, wants_help);

  Result<Words> words = cut(app, args, verb.operands);
  if (!words) {
    return words.error();
  }
  const Result<Done> parsed = parse(app, *words);
  if (!parsed) {
    return parsed.error();
  }
  if (wants_help) {
    print(help_of(verb));
    return ended(ExitCode::ok);
  }
  if (verb.operands == Operands::none && !words->operands.empty()) {
    return usage("unexpected '" + printable(words->operands.front()) + "' (rlock help " +
                 std::string(verb.name) + " shows the usage)");
  }
  return act({std::move(words->operands), environment, signals});
}

// --help and --version are verbs too, to those who do not know ours yet.
std::string_view verb_name(std::string_view first)
{
  if (first == "-h" || first == "--help") {
    return help_verb.name;
  }
  if (first == "-V" || first == "--version") {
    return version_verb.name;
  }
  return first;
}

}  // namespace

Act describe(const Verb& verb, CLI::App& app, bool& wants_help)
{
  app.name(std::string(verb.name));
  app.set_help_flag();  // CLI11's own would print CLI11's own text
  Act act = verb.describe(app);
  add_flag(app, "-h,--help", wants_help, "show this and exit");
  return act;
}

Result<RunEnd> dispatch(std::span<const std::string> args, const Environment& environment,
                        Signals& signals)
{
  if (args.empty()) {
    return usage("say what to do: rlock run -k KEY -- CMD (rlock help tells more)");
  }
  const std::string_view name = verb_name(args.front());
  if (name.starts_with('-')) {
    return usage("the verb comes before its options: rlock run " + printable(name) +
                 " … (rlock help lists the verbs)");
  }
  const Result<const Verb*> verb = find_verb(name);
  if (!verb) {
    return verb.error();
  }
  return call(**verb, args.subspan(1), environment, signals);
}

}  // namespace rlock::cli
