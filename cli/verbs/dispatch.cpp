// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/dispatch.h"

#include "base/log.h"
#include "base/text.h"
#include "cli/help/help.h"
#include "cli/options/config.h"
#include "cli/options/option_table.h"
#include "cli/options/parse_words.h"
#include "cli/options/passwords.h"
#include "cli/options/server.h"
#include "cli/output/output.h"
#include "redis/acl.h"
#include "run/verdict.h"

#include <algorithm>
#include <array>
#include <optional>

namespace rlock::cli {
namespace {

constexpr std::array verb_table{
    &run_verb,    &flock_verb,      &once_verb,    &forget_verb, &acquire_verb, &renew_verb,  &release_verb,
    &check_verb,  &status_verb,     &ttl_verb,     &list_verb,   &watch_verb,   &wait_verb,   &force_unlock_verb,
    &freeze_verb, &thaw_verb,       &history_verb, &events_verb, &config_verb,  &doctor_verb, &bench_verb,
    &acl_verb,    &completion_verb, &version_verb, &help_verb,
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

Verbs all_verbs() { return verb_table; }

Result<const Verb*> find_verb(std::string_view name)
{
  std::vector<std::string> names;
  for (const Verb* verb : verb_table) {
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
  if (find_topic(name) != nullptr || engine_named(name) != nullptr || find_manual_page(name) != nullptr) {
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

// For a user who may read some locks only, but asked for all.
Error with_pattern(Error error, const Verb& verb, const ParsedWords& words)
{
  const bool may_name_some = verb.synopsis.find("PATTERN") != std::string_view::npos;
  if (may_name_some && words.operands.empty() && !words.has("--key") && is_about_keys(error) &&
      error.text.ends_with(')')) {
    error.text.insert(error.text.size() - 1,
                      "; name the locks that this user may read: rlock " + std::string(verb.name) + " 'app:*'");
  }
  return error;
}

// `settings`: of the config file, for options that were not given.
Result<RunEnd> act(const Verb& verb, const VerbAction& action, const OptionTable& known, const ParsedWords& words,
                   const std::vector<Given>& settings, const Environment& environment, Signals& signals)
{
  std::vector<Given> given = words.options;
  given.insert(given.end(), settings.begin(), settings.end());
  RETURN_IF_ERROR(apply_options(known, given, verb.operands));
  if (verb.operands == Operands::none && !words.operands.empty()) {
    return usage("unexpected '" + shown_word(words.operands.front()) + "' (rlock help " + std::string(verb.name) +
                 " shows the usage)");
  }
  Result<RunEnd> end = action({words.operands, environment, signals, given});
  if (end) {
    return end;
  }
  if (end.error().code == ErrorCode::refused) {
    Error error = with_pattern(end.error(), verb, words);
    const RawServer raw = server_given_by(words.options);
    const auto named = resolve_endpoints(raw.urls, environment);
    error.text = with_login(error.text, named ? login_of(*named, raw, environment) : "");
    const bool has_own = words.has("--password-file") || words.has("--server");
    return has_own ? error : with_password_for_job(error, environment);
  }
  if (end.error().code != ErrorCode::unreachable || words.has("--server")) {
    return end.error();
  }
  const auto server = resolve_endpoints({}, environment);
  return with_private_server(end.error(), server ? server->named_by : "");
}

Result<RunEnd> act_with(const ConfigFile& config, const Verb& verb, const VerbAction& action, const OptionTable& known,
                        const ParsedWords& words, Environment environment, Signals& signals)
{
  ASSIGN_OR_RETURN(const auto settings, read_settings(config, known, all_verbs()));
  environment.configure(settings);
  const std::vector<Given> beside = settings_beside(words.options, settings, known);
  Result<RunEnd> end = act(verb, action, known, words, beside, environment, signals);
  return end ? std::move(end) : with_source(end.error(), beside);
}

// For an error of words that cannot be parsed.
void apply_log_format_early(std::span<const std::string> args)
{
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    const bool is_next = args[i] == "--log-format" && i + 1 < args.size() && args[i + 1] == "json";
    if (is_next || args[i] == "--log-format=json") {
      set_log_style({.format = LogFormat::json, .key = ""});
    }
  }
}

// The verbs that have this option: "rlock once, rlock freeze"; empty: none has. An option that many verbs have says little of any.
std::string verbs_with(std::string_view option)
{
  constexpr std::size_t most = 3;
  std::size_t count = 0;
  std::string names;
  for (const Verb* const verb : verb_table) {
    OptionTable known(verb->name);
    add_verb_options(*verb, known);
    const auto entry = std::ranges::find_if(
        known.all(), [&](const OptionTable::Entry& each) { return each.option->has_name(option); });
    if (entry != known.all().end() && !entry->group.empty() && ++count <= most) {
      names += (names.empty() ? "rlock " : ", rlock ") + std::string(verb->name);
    }
  }
  return names + (count > most ? " and others" : "");
}

// Only verbs that ask a server read the config file.
Result<RunEnd> call(const Verb& verb, std::span<const std::string> args, const Environment& environment,
                    Signals& signals)
{
  OptionTable known(verb.name);
  const VerbAction action = add_verb_options(verb, known);
  const Result<ParsedWords> words = parse_words(known, args, verb.operands, verbs_with);
  if (!words) {
    apply_log_format_early(args);
    return words.error();
  }
  if (words->has("--help") || words->has("-h")) {
    print(words->has("--help") ? help_of(verb) : brief_help_of(verb));
    return ended(ExitCode::ok);
  }
  ASSIGN_OR_RETURN(const auto config,
                   known.find("--server") == nullptr ? Result(std::optional<ConfigFile>()) : find_config(environment));
  return config ? act_with(*config, verb, action, known, *words, environment, signals)
                : act(verb, action, known, *words, {}, environment, signals);
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
  ASSIGN_OR_RETURN(const auto verb, find_verb(name));
  return call(*verb, args.subspan(1), environment, signals);
}

}  // namespace rlock::cli
