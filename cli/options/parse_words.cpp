// SPDX-License-Identifier: Apache-2.0
#include "cli/options/parse_words.h"

// CLI11 includes <iostream>, whose static object makes all standard streams and their locales at each start: 50,000 instructions, a
// tenth of a run. No code of CLI11 that rlock calls writes to them, so here they are declared and not made.
#include <ostream>
#ifdef __GLIBCXX__
#define _GLIBCXX_IOSTREAM 1  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
namespace std {              // NOLINT(cert-dcl58-cpp)
extern ostream cout;
extern ostream cerr;
}  // namespace std
#endif
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>

namespace rlock::cli {
namespace {

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-' && word != "--"; }
bool is_long(std::string_view word) { return is_option(word) && word[1] == '-'; }
std::string_view long_name(std::string_view word) { return word.substr(0, word.find('=')); }

// CLI11 reads `--key=` as an option whose value is the next word, so this stands for the empty value.
constexpr std::string_view empty_value = "\x01the empty value\x01";

std::string without_empty_value(std::string word)
{
  if (word.ends_with(empty_value)) {
    word.resize(word.size() - empty_value.size());
  }
  return word;
}

// The only option with a long name that begins with `prefix`; nullptr: there is none, or more than one.
const Option* abbreviated(const OptionTable& known, std::string_view prefix)
{
  const Option* match = nullptr;
  for (const OptionTable::Entry& entry : known.all()) {
    const auto names = entry.option->long_names();
    if (std::ranges::any_of(names, [&](std::string_view name) { return name.starts_with(prefix); })) {
      if (match != nullptr) {
        return nullptr;
      }
      match = entry.option;
    }
  }
  return match;
}

// CLI11 is told only the options that the words may name, because each one that it is told costs some 10,000 instructions.
class Parser {
 public:
  Parser(const OptionTable& known, std::span<const std::string> args, Operands operands, const OtherVerbs& other_verbs)
      : m_known(known),
        m_other_verbs(other_verbs),
        m_args(args),
        m_operand_ends_options(operands == Operands::command || operands == Operands::getopt),
        m_may_be_shortened(operands == Operands::getopt)
  {
    m_app.set_help_flag();
    m_app.prefix_command(m_operand_ends_options);
    m_app.allow_extras();
    const auto end = std::ranges::find(args, "--");
    std::for_each(args.begin(), end, [this](const std::string& word) { add_options_in(word); });
  }

  Result<ParsedWords> parse()
  {
    std::vector<std::string> words;  // in reverse, as CLI11 takes them
    std::transform(m_args.rbegin(), m_args.rend(), std::back_inserter(words),
                   [this](const std::string& word) { return with_empty_value(with_whole_name(word)); });
    try {
      m_app.parse(words);
    } catch (const CLI::ParseError&) {
      return value_error();
    }
    ParsedWords parsed{.options = found_options(), .operands = {}};
    bool may_be_option = true;
    for (const std::string& word : operands()) {
      if (may_be_option && is_option(word)) {
        return unknown(word);
      }
      if (!may_be_option || word != "--") {
        parsed.operands.push_back(without_empty_value(word));
      }
      may_be_option = may_be_option && word != "--" && !m_operand_ends_options;
    }
    return parsed;
  }

 private:
  struct Added {
    CLI::Option* parsed;
    const Option* option;
    std::size_t taken = 0;  // results
  };

  // By its whole name, or where that is allowed by the beginning of one; nullptr: there is none.
  [[nodiscard]] const Option* named(std::string_view name) const
  {
    const Option* const option = m_known.find(name);
    return option == nullptr && m_may_be_shortened ? abbreviated(m_known, name) : option;
  }

  // The name as it is typed, or the long name that it abbreviates.
  static std::string whole_name(const Option& option, std::string_view name)
  {
    const auto names = option.long_names();
    const auto whole = std::ranges::find_if(names, [&](std::string_view each) { return each.starts_with(name); });
    return std::string(option.has_name(name) || whole == names.end() ? name : *whole);
  }

  void add_options_in(const std::string& word)
  {
    if (is_long(word)) {
      if (const Option* const option = named(long_name(word))) {
        add(*option);
      }
    } else if (is_option(word)) {
      for (const char letter : word.substr(1)) {
        if (const Option* option = m_known.find(std::string{'-', letter})) {
          add(*option);
        }
      }
    }
  }

  void add(const Option& option)
  {
    if (std::ranges::find(m_added, &option, &Added::option) != m_added.end()) {
      return;
    }
    const std::string names(option.names);
    CLI::Option* const parsed = option.takes_value()
                                    ? m_app.add_option(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                                    : m_app.add_flag(names)->disable_flag_override();
    m_added.push_back({.parsed = parsed, .option = &option});
  }

  // CLI11 2.4.1 refuses an option --w beside -w, so it is told whole names only. An operand comes back as it was: where names may be
  // shortened, the first operand ends the options, so that the words that CLI11 leaves are the last ones.
  [[nodiscard]] std::string with_whole_name(const std::string& word) const
  {
    const Option* const option = m_may_be_shortened && is_long(word) ? named(long_name(word)) : nullptr;
    return option == nullptr ? word : whole_name(*option, long_name(word)).append(word, long_name(word).size());
  }
  [[nodiscard]] std::vector<std::string> operands() const
  {
    std::vector<std::string> left = m_app.remaining();
    if (m_may_be_shortened) {
      std::ranges::copy(m_args.last(left.size()), left.begin());
    }
    return left;
  }

  [[nodiscard]] std::string with_empty_value(const std::string& word) const
  {
    const bool has_empty_value = is_long(word) && word.ends_with('=');
    return has_empty_value ? word + std::string(empty_value) : word;
  }

  // In the order of the words, because the last one of several counts.
  std::vector<Given> found_options()
  {
    std::vector<Given> found;
    for (const CLI::Option* const parsed : m_app.parse_order()) {
      Added& added = *std::ranges::find(m_added, parsed, &Added::parsed);
      const bool takes_value = added.option->takes_value();
      found.push_back({.option = added.option,
                       .value = takes_value ? without_empty_value(parsed->results().at(added.taken++)) : ""});
    }
    return found;
  }

  // CLI11 refuses a value of a flag, and a last word that needs a value.
  [[nodiscard]] Error value_error() const
  {
    for (const std::string& word : m_args) {
      const Option* const flag = is_long(word) ? named(long_name(word)) : nullptr;
      if (flag != nullptr && !flag->takes_value() && word.find('=') != std::string::npos) {
        return usage(whole_name(*flag, long_name(word)) + " takes no value");
      }
    }
    const std::string& last = m_args.back();
    const std::string name = is_long(last) ? last : std::string{'-', last.back()};
    const Option* const option = named(name);
    if (option == nullptr) {
      return usage("the options cannot be read (rlock help " + std::string(m_known.verb()) + " shows the usage)");
    }
    const std::string whole = whole_name(*option, name);
    return usage(whole + " needs a value: " + whole + " " + std::string(option->value));
  }

  [[nodiscard]] Error unknown(std::string_view word) const
  {
    const std::string_view name = is_long(word) ? long_name(word) : word;
    const std::string otherwise = " (rlock help " + std::string(m_known.verb()) + " lists them)";
    if (const std::string others = m_other_verbs ? m_other_verbs(name) : ""; !others.empty()) {
      return usage("unknown option '" + shown_word(name) + "' (it belongs to " + others + ")");
    }
    return usage("unknown option '" + shown_word(name) + "'" + did_you_mean(name, m_known.long_names(), otherwise));
  }

  const OptionTable& m_known;
  const OtherVerbs& m_other_verbs;
  const std::span<const std::string> m_args;
  const bool m_operand_ends_options;
  const bool m_may_be_shortened;
  CLI::App m_app;
  std::vector<Added> m_added;
};

Error exclusive(const Given& one, const Given& other)
{
  const Others& named =
      have_common_name(one.option->excludes.names, other.option->names) ? one.option->excludes : other.option->excludes;
  return usage(one.option->name() + " and " + other.option->name() + " exclude each other" +
               std::string(named.advice.empty() ? " (leave one of them out)" : named.advice));
}

Result<Done> check_needs(const Given& given, std::span<const Given> all)
{
  const Others& needs = given.option->needs;
  if (needs.names.empty() || std::ranges::any_of(all, [&](const Given& other) {
        return have_common_name(needs.names, other.option->names);
      })) {
    return Done{};
  }
  std::string names(needs.names);
  if (const auto comma = names.find(','); comma != std::string::npos) {
    names.replace(comma, 1, " or ");
  }
  return usage(given.option->name() + " needs " + names + std::string(needs.advice));
}

Result<Done> check_others(std::span<const Given> options)
{
  for (auto one = options.begin(); one != options.end(); ++one) {
    const auto other =
        std::find_if(one + 1, options.end(), [&](const Given& each) { return are_exclusive(*one, each); });
    if (other != options.end()) {
      return exclusive(*one, *other);
    }
    RETURN_IF_ERROR(check_needs(*one, options));
  }
  return Done{};
}

}  // namespace

bool ParsedWords::has(std::string_view name) const
{
  return std::ranges::any_of(options, [&](const Given& given) { return given.option->has_name(name); });
}

Result<ParsedWords> parse_words(const OptionTable& known, std::span<const std::string> args, Operands operands,
                                const OtherVerbs& other_verbs)
{
  return Parser(known, args, operands, other_verbs).parse();
}

bool are_exclusive(const Given& one, const Given& other)
{
  const auto is_neutral = [](const Given& given) {
    return given.option->is_neutral != nullptr && given.option->is_neutral(given.value);
  };
  return (have_common_name(one.option->excludes.names, other.option->names) ||
          have_common_name(other.option->excludes.names, one.option->names)) &&
         !is_neutral(one) && !is_neutral(other);
}

Result<Done> apply_options(const OptionTable& known, std::span<const Given> options, Operands operands)
{
  const Result<Done> fit = operands == Operands::getopt ? Result(Done{}) : check_others(options);
  const Result<Done> applied = known.apply(options);
  return fit ? applied : fit;
}

}  // namespace rlock::cli
