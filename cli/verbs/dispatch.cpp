// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/dispatch.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/help/help.h"
#include "cli/options/config.h"
#include "cli/options/option_table.h"
#include "cli/options/parse_words.h"
#include "cli/output/output.h"

#include <array>
#include <optional>

namespace rlock::cli {
namespace {

constexpr std::array table{
    &run_verb,     &flock_verb,        &once_verb,    &forget_verb, &acquire_verb, &renew_verb,
    &release_verb, &check_verb,        &status_verb,  &ttl_verb,    &list_verb,    &watch_verb,
    &wait_verb,    &force_unlock_verb, &history_verb, &events_verb, &doctor_verb,  &bench_verb,
    &acl_verb,     &completion_verb,   &version_verb, &help_verb,
};

// A name that another tool or a user has for a verb.
struct OtherName {
  std::string_view name;
  std::string_view advice;
};
constexpr std::array other_names{
    OtherName{"unlock", " (rlock release releases a lock by its token, rlock force-unlock takes it from its holder)"},
    OtherName{"lock", " (rlock run holds it while a command runs, rlock acquire while a script does)"},
    OtherName{"exec", " (try rlock run)"},
    OtherName{"ls", " (did you mean 'list'?)"},
    OtherName{"ps", " (did you mean 'list'?)"},
    OtherName{"top", " (did you mean 'watch'?)"},
};

}  // namespace

std::span<const Verb* const> all_verbs() { return table; }

Result<const Verb*> find_verb(std::string_view name)
{
  std::vector<std::string> names;
  for (const Verb* verb : table) {
    if (verb->name == name) {
      return verb;
    }
    names.emplace_back(verb->name);
  }
  for (const OtherName& other : other_names) {
    if (other.name == name) {
      return usage("unknown verb '" + std::string(name) + "'" + std::string(other.advice));
    }
  }
  if (find_topic(name) != nullptr) {
    return usage("unknown verb '" + std::string(name) + "' (try rlock help " + std::string(name) + ")");
  }
  if (name.find('/') != std::string_view::npos) {
    return usage("unknown verb '" + shown_word(name) + "' (to run a command: rlock run -k KEY -- " + shown_word(name) +
                 ")");
  }
  return Error{ErrorCode::usage,
               "unknown verb '" + shown_word(name) + "'" + did_you_mean(name, names, " (rlock help lists them)")};
}

namespace {

constexpr std::string_view flock_program = "rflock";

// The command line of one verb. Must not be moved, because the targets of `options` are in it.
struct ParsedVerb {
  OptionTable options;
  HelpWanted wants_help;
  VerbAction action;
  ParsedWords split;
};

Result<Done> parse_verb(ParsedVerb& parsed, const Verb& verb, std::span<const std::string> args)
{
  parsed.action = add_verb_options(verb, parsed.options, parsed.wants_help);
  Result<ParsedWords> split = parse_words(parsed.options, args, verb.operands);
  if (!split) {
    return split.error();
  }
  parsed.split = *std::move(split);
  fill_targets(parsed.options, parsed.split);
  return Done{};
}

Result<RunEnd> execute(const ParsedVerb& parsed, const Verb& verb, const Environment& environment, Signals& signals)
{
  const auto& operands = parsed.split.operands;
  if (verb.operands == Operands::none && !operands.empty()) {
    return usage("unexpected '" + shown_word(operands.front()) + "' (rlock help " + std::string(verb.name) +
                 " shows the usage)");
  }
  return parsed.action({operands, environment, signals});
}

// With the settings of the file for options that were not given.
Result<RunEnd> act_with(const ConfigFile& config, ParsedVerb& parsed, const Verb& verb, Environment environment,
                        Signals& signals)
{
  const Result<std::vector<Setting>> settings = read_settings(config, parsed.options);
  if (!settings) {
    return settings.error();
  }
  fill_targets(parsed.options, argv_of(*settings, parsed.options, parsed.split));
  environment.configure(*settings);
  Result<RunEnd> end = execute(parsed, verb, environment, signals);
  return end ? std::move(end) : with_source(end.error(), *settings, parsed.options, parsed.split);
}

// Before the options are parsed: so that a usage error is printed as JSON too.
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

// Only verbs that ask a server read the config file.
Result<RunEnd> call(const Verb& verb, std::span<const std::string> args, const Environment& environment,
                    Signals& signals)
{
  ParsedVerb parsed{.options = OptionTable(verb.name), .wants_help = {}, .action = {}, .split = {}};
  const Result<Done> done = parse_verb(parsed, verb, args);
  if (!done) {
    apply_log_format_early(args);
    return done.error();
  }
  if (const auto helped = help_on(verb, parsed.wants_help)) {
    return *helped;
  }
  if (parsed.options.find("--server") == nullptr) {
    return execute(parsed, verb, environment, signals);
  }
  const auto config = find_config(environment);
  if (!config) {
    return config.error();
  }
  return *config ? act_with(**config, parsed, verb, environment, signals) : execute(parsed, verb, environment, signals);
}

// `rlock --help` and `rlock --version` mean the verbs.
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
  const std::string_view path = words.empty() ? std::string_view{} : std::string_view(words.front());
  return path.substr(path.rfind('/') + 1) == flock_program ? flock_program : "rlock";
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

VerbAction add_verb_options(const Verb& verb, OptionTable& table, HelpWanted& wants_help)
{
  Options options(table);
  VerbAction action = verb.add_options(options);
  options.flag("-h", wants_help.brief, "show the options by name and exit");
  options.flag("--help", wants_help.whole, "show this and exit");
  return action;
}

Result<RunEnd> dispatch(std::span<const std::string> args, const Environment& environment, Signals& signals)
{
  if (args.empty()) {
    return usage("say what to do: rlock run -k KEY -- CMD (rlock help shows the verbs)");
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
