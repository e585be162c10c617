// SPDX-License-Identifier: Apache-2.0
// rlock completion: prints the completion script of a shell, and the candidates that the script asks for.
#include "cli/verbs/completion.h"

#include "base/text.h"
#include "cli/help/help.h"
#include "cli/options/config.h"
#include "cli/options/option_table.h"
#include "cli/options/parse_words.h"
#include "cli/output/output.h"
#include "cli/verbs/ask.h"
#include "cli/verbs/dispatch.h"
#include "completions/scripts.h"
#include "stores/open.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace rlock::cli {
namespace {

constexpr Millis server_timeout{500};  // the user waits for the candidates

constexpr std::string_view shells = "bash|zsh|fish";
constexpr std::array scripts{completions::bash, completions::zsh, completions::fish};
constexpr std::array<std::string_view, 6> signal_names{"TERM", "INT", "HUP", "QUIT", "USR1", "USR2"};

std::vector<Candidate> plain_candidates(const auto& words)
{
  std::vector<Candidate> candidates;
  candidates.reserve(std::size(words));
  for (const std::string_view word : words) {
    candidates.push_back({std::string(word), {}});
  }
  return candidates;
}

std::vector<Candidate> verbs()
{
  std::vector<Candidate> candidates;
  for (const Verb* verb : all_verbs()) {
    candidates.push_back({std::string(verb->name), std::string(verb->summary)});
  }
  return candidates;
}

std::vector<Candidate> options_of(const OptionTable& table)
{
  std::vector<Candidate> candidates;
  for (const OptionTable::Entry& entry : table.all()) {
    if (entry.group.empty()) {
      continue;  // hidden from help
    }
    for (const auto& names : {entry.option->long_names(), entry.option->short_names()}) {
      for (const std::string_view name : names) {
        candidates.push_back({std::string(name), entry.option->help.str()});
      }
    }
  }
  return candidates;
}

// The servers that the config file names.
std::vector<Candidate> named_servers(const Environment& environment)
{
  std::vector<Candidate> candidates;
  for (const Setting& setting : environment.settings()) {
    if (setting.option.starts_with('@')) {
      candidates.push_back({setting.option, without_secrets(setting.values.front())});
    }
  }
  return candidates;
}

// The environment with the settings of the config file for this verb, as far as the file is valid.
Environment configured(const Environment& environment, const Verb& verb)
{
  OptionTable known(verb.name);
  const VerbAction action = add_verb_options(verb, known);
  const auto file = find_config(environment);
  const auto settings = file && *file ? read_settings(**file, known, all_verbs()) : Result(std::vector<Setting>());
  Environment with_settings = environment;
  with_settings.configure(settings ? *settings : std::vector<Setting>{});
  return with_settings;
}

// The names, after the prefix, of the locks on the server that `options` name.
std::vector<Candidate> locks(std::span<const Given> options, const Environment& environment)
{
  OptionTable known;
  RawServer server;
  RawKeys keys;
  add_server_options(known, server);
  known.add(prefix_row, keys);
  if (!known.apply_by_name(options)) {
    return {};
  }
  server.timeout = server_timeout;
  const auto opened = open_server(server, environment);
  const auto names =
      opened ? opened->store->find_known(resolve_pattern(keys, "*"), {*opened->clock, opened->timeout, opened->limit()})
             : Result(std::vector<LockName>{});
  std::vector<Candidate> candidates;
  for (const LockName& name : names ? *names : std::vector<LockName>{}) {
    candidates.push_back({name.text().substr(keys.prefix.size()), {}});
  }
  return candidates;
}

// A command line after the verb, up to the word that the user is typing.
class CommandLine {
 public:
  CommandLine(const Verb& verb, std::span<const std::string> before, std::string_view typed,
              const Environment& environment)
      : m_verb(verb), m_before(before), m_typed(typed), m_environment(environment), m_options(verb.name)
  {
    add_verb_options(verb, m_options);
  }

  Completion next()
  {
    const auto before = parse_words(m_options, m_before, m_verb.operands);
    if (!before) {
      return value_of_unfinished();
    }
    const auto with_option = split_with("--help");
    const bool options_are_over = with_option && with_option->operands.size() > before->operands.size();
    if (m_typed.starts_with('-') && !options_are_over) {
      return option();
    }
    const std::size_t operands = before->operands.size();
    if (const auto keys = keys_before_command(); keys && operands >= *keys) {
      return {.kind = Completion::Kind::command, .command_at = m_before.size() - operands + *keys, .candidates = {}};
    }
    return values(operand(), before->options);
  }

 private:
  // How many operands precede the command; nullopt: the verb runs no command.
  [[nodiscard]] std::optional<std::size_t> keys_before_command() const
  {
    switch (m_verb.operands) {
      case Operands::command: return 0;
      case Operands::getopt: return 1;
      case Operands::none:
      case Operands::anywhere: break;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<ParsedWords> split_with(const std::string& word) const
  {
    std::vector<std::string> words(m_before.begin(), m_before.end());
    words.push_back(word);
    const auto result = parse_words(m_options, words, m_verb.operands);
    return result ? std::optional(*result) : std::nullopt;
  }

  // `rlock run --on-lost `: the option still needs its value.
  Completion value_of_unfinished()
  {
    const auto whole = split_with("value");
    return whole && !whole->options.empty() ? values(whole->options.back().option->value, whole->options)
                                            : Completion{};
  }

  // The name of an option, or the value in `--on-lost=w`.
  Completion option()
  {
    const std::size_t equals = m_typed.find('=');
    const Option* known = equals == std::string_view::npos ? nullptr : m_options.find(m_typed.substr(0, equals));
    if (known == nullptr) {
      return {.candidates = options_of(m_options)};
    }
    Completion completion = values(known->value, {});
    for (Candidate& candidate : completion.candidates) {
      candidate.word.insert(0, m_typed.substr(0, equals + 1));
    }
    return completion;
  }

  // The name of the operand in the synopsis: KEY of "[OPTION...] [-k] KEY...".
  [[nodiscard]] std::string operand() const
  {
    for (const std::string_view name : {"KEY", "PATTERN", "GLOB", "VERB", "SHELL"}) {
      if (m_verb.synopsis.find(name) != std::string_view::npos) {
        return std::string(name == "SHELL" ? shells : name);
      }
    }
    return {};
  }

  // The candidates for a value such as auto|DUR: capitals name a kind of value, other words are values.
  Completion values(std::string_view type, std::span<const Given> options)
  {
    Completion completion;
    for (const std::string_view word : split_ended(type, '|')) {
      if (word == "FILE") {
        return {.kind = Completion::Kind::files, .candidates = {}};
      }
      const std::vector<Candidate> some = candidates_for(word, options);
      completion.candidates.insert(completion.candidates.end(), some.begin(), some.end());
    }
    return completion;
  }

  [[nodiscard]] std::vector<Candidate> candidates_for(std::string_view word, std::span<const Given> options) const
  {
    if (word == "KEY" || word == "PATTERN" || word == "GLOB") {
      return locks(options, m_environment);
    }
    if (word == "VERB") {
      std::vector<Candidate> topics = verbs();
      for (const Topic& topic : all_topics()) {
        topics.push_back({std::string(topic.name), std::string(topic.summary)});
      }
      for (const Engine* const engine : built_engines()) {
        topics.push_back({std::string(engine->page), summary_of(*engine)});
      }
      for (const ManualPage& page : all_manual_pages()) {
        topics.push_back({std::string(page.words.substr(0, page.words.find(','))), std::string(page.summary)});
      }
      return topics;
    }
    if (word == "SIG") {
      return plain_candidates(signal_names);
    }
    if (word == "URL") {
      return plain_candidates(url_beginnings());
    }
    if (word == "@NAME") {
      return named_servers(m_environment);
    }
    const bool is_literal = !word.empty() && word.front() >= 'a' && word.front() <= 'z';
    return is_literal ? std::vector<Candidate>{{std::string(word), {}}} : std::vector<Candidate>{};
  }

  const Verb& m_verb;
  std::span<const std::string> m_before;
  std::string_view m_typed;
  const Environment& m_environment;
  OptionTable m_options;
};

Completion all(std::span<const std::string> words, const Environment& environment)
{
  if (words.size() < 2) {
    return {.candidates = verbs()};
  }
  const auto verb = find_verb(words.front());
  if (!verb) {
    return {};
  }
  const Environment with_settings = configured(environment, **verb);
  return CommandLine(**verb, words.subspan(1, words.size() - 2), words.back(), with_settings).next();
}

}  // namespace

Completion complete(std::span<const std::string> words, const Environment& environment)
{
  Completion completion = all(words, environment);
  completion.command_at += completion.kind == Completion::Kind::command ? 1 : 0;  // for the verb
  const std::string_view typed = words.empty() ? std::string_view{} : words.back();
  std::erase_if(completion.candidates, [&](const Candidate& one) { return !one.word.starts_with(typed); });
  return completion;
}

namespace {

struct RawCompletion {
  bool next = false;
};

// Prints the kind, then a line for each candidate, in the format of fish. Leaves out names that are not safe to print, because
// they come from a server.
void print_completion(const Completion& completion)
{
  switch (completion.kind) {
    case Completion::Kind::files: print("files\n"); return;
    case Completion::Kind::command: print("command " + std::to_string(completion.command_at) + "\n"); return;
    case Completion::Kind::words: break;
  }
  print("words\n");
  for (const Candidate& candidate : completion.candidates) {
    if (candidate.word == printable(candidate.word)) {
      print(candidate.word + "\t" + candidate.about + "\n");
    }
  }
}

Result<RunEnd> execute(const RawCompletion& raw, const Call& call)
{
  if (raw.next) {
    print_completion(complete(call.operands, call.environment));
    return ended(ExitCode::ok);
  }
  if (call.operands.size() != 1) {
    return usage("say for which shell: rlock completion bash, zsh or fish");
  }
  ASSIGN_OR_RETURN(const auto shell, index_of(call.operands.front(), shells, "completion"));
  print(scripts.at(shell));
  return ended(ExitCode::ok);
}

constexpr OptionRow<RawCompletion> next_row{
    {.names = "--next",
     .help = "print what may follow these WORDs, of which the last is unfinished; the scripts call rlock with it"},
    set<&RawCompletion::next>};

void add_completion_options(OptionTable& options, RawCompletion& raw) { options.add(next_row, raw); }

}  // namespace

const Verb completion_verb{
    .name = "completion",
    .summary = "print the completion script of bash, zsh or fish",
    .synopsis = "SHELL | --next -- WORD...",
    .examples = {"rlock completion zsh >~/.zfunc/_rlock", "source <(rlock completion bash)",
                 "rlock completion fish >~/.config/fish/completions/rlock.fish"},
    .own_exits = {{ExitCode::ok, "printed"}},
    .common_exits = printing_codes,
    .add_options = bound<RawCompletion, add_completion_options, execute>,
};

}  // namespace rlock::cli
