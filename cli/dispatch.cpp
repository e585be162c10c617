// SPDX-License-Identifier: Apache-2.0
#include "cli/dispatch.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/help/help.h"
#include "cli/options/config.h"
#include "cli/options/options.h"
#include "cli/options/split_argv.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"

#include <CLI/CLI.hpp>

#include <optional>

namespace rlock::cli {
namespace {

constexpr std::string_view flock_program = "rflock";

VerbAction add_verb_options(const Verb& verb, CLI::App& app, Options options, HelpWanted& wants_help)
{
  app.name(std::string(verb.name));
  app.set_help_flag();  // CLI11's own would print CLI11's own text
  VerbAction action = verb.add_options(options);
  options.flag("-h", wants_help.brief, "show the options by name and exit");
  options.flag("--help", wants_help.whole, "show this and exit");
  return action;
}

// What was typed, in the verb's own terms. Not to be moved: what `app` fills is in it.
struct ParsedVerb {
  CLI::App app;
  HelpWanted wants_help;
  VerbAction action;
  SplitArgv words;
};

Result<Done> understand(ParsedVerb& raw, const Verb& verb, std::span<const std::string> args, const Options& options)
{
  raw.action = add_verb_options(verb, raw.app, options, raw.wants_help);
  Result<SplitArgv> words = split_argv(raw.app, args, verb.operands);
  if (!words) {
    return words.error();
  }
  raw.words = *std::move(words);
  return parse(raw.app, raw.words);
}

Result<RunEnd> execute(const ParsedVerb& raw, const Verb& verb, const Environment& environment, Signals& signals)
{
  const auto& operands = raw.words.operands;
  if (verb.operands == Operands::none && !operands.empty()) {
    return usage("unexpected '" + shown_word(operands.front()) + "' (rlock help " + std::string(verb.name) +
                 " shows the usage)");
  }
  return raw.action({operands, environment, signals});
}

// The file fills what was not typed.
Result<RunEnd> act_with(const ConfigFile& config, ParsedVerb& raw, const Verb& verb, Environment environment,
                        Signals& signals)
{
  const Result<std::vector<Setting>> settings = read_settings(config, raw.app);
  if (!settings) {
    return settings.error();
  }
  const Result<Done> parsed = parse(raw.app, argv_of(*settings, raw.app, raw.words));
  if (!parsed) {
    return parsed.error();
  }
  environment.configure(*settings);
  Result<RunEnd> end = execute(raw, verb, environment, signals);
  return end ? std::move(end) : blame(end.error(), *settings, raw.app, raw.words);
}

// Who wants JSON wants it also of what is wrong with the words.
void apply_log_format_early(std::span<const std::string> args)
{
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    const bool is_next = args[i] == "--log-format" && i + 1 < args.size() && args[i + 1] == "json";
    if (is_next || args[i] == "--log-format=json") {
      set_log_style({.format = LogFormat::json, .key = ""});
    }
  }
}

std::optional<RunEnd> help_on(const Verb& verb, const HelpWanted& wanted)
{
  if (!wanted.brief && !wanted.whole) {
    return std::nullopt;
  }
  print(wanted.whole ? help_of(verb) : brief_help_of(verb));
  return ended(ExitCode::ok);
}

// With all its options. The verbs that know no server have nothing to configure.
Result<RunEnd> call_in_full(const Verb& verb, std::span<const std::string> args,
                            const Result<std::optional<ConfigFile>>& config, const Environment& environment,
                            Signals& signals)
{
  ParsedVerb raw;
  const Result<Done> understood = understand(raw, verb, args, Options(raw.app));
  if (!understood) {
    apply_log_format_early(args);
    return understood.error();
  }
  if (const auto helped = help_on(verb, raw.wants_help)) {
    return *helped;
  }
  const bool is_configured = raw.app.get_option_no_throw("--server") != nullptr;
  if (is_configured && !config) {
    return config.error();
  }
  return is_configured && *config ? act_with(**config, raw, verb, environment, signals)
                                  : execute(raw, verb, environment, signals);
}

// The options that were typed are enough to understand them; all are needed to say what was wrong, for a config file, and
// where a long one may be shortened.
Result<RunEnd> call(const Verb& verb, std::span<const std::string> args, const Environment& environment,
                    Signals& signals)
{
  const auto config = find_config(environment);
  if (config && !*config && verb.operands != Operands::getopt) {
    ParsedVerb raw;
    if (understand(raw, verb, args, Options(raw.app, args))) {
      const auto helped = help_on(verb, raw.wants_help);
      return helped ? *helped : execute(raw, verb, environment, signals);
    }
  }
  return call_in_full(verb, args, config, environment, signals);
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

std::string_view program_of(std::span<const std::string> words)
{
  const std::string_view raw = words.empty() ? std::string_view{} : std::string_view(words.front());
  return raw.substr(raw.rfind('/') + 1) == flock_program ? flock_program : "rlock";
}

std::vector<std::string> args_of(std::span<const std::string> words)
{
  if (words.empty()) {
    return {};
  }
  std::vector<std::string> args(words.begin() + 1, words.end());
  if (program_of(words) == flock_program) {
    args.insert(args.begin(), std::string(flock_verb.name));
  }
  return args;
}

VerbAction add_verb_options(const Verb& verb, CLI::App& app, HelpWanted& wants_help)
{
  return add_verb_options(verb, app, Options(app), wants_help);
}

Result<RunEnd> dispatch(std::span<const std::string> args, const Environment& environment, Signals& signals)
{
  if (args.empty()) {
    return usage("say what to do: rlock run -k KEY -- CMD (rlock help tells more)");
  }
  const std::string_view name = verb_name(args.front());
  if (name.starts_with('-')) {
    return usage("the verb comes before its options: rlock run " + shown_word(name) +
                 " … (rlock help lists the verbs)");
  }
  const Result<const Verb*> verb = find_verb(name);
  if (!verb) {
    return verb.error();
  }
  return call(**verb, args.subspan(1), environment, signals);
}

}  // namespace rlock::cli
