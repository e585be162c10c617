// SPDX-License-Identifier: Apache-2.0
// The options of one verb as values: how they are typed, what help says of them, and where their values go. Parsing, help,
// the manual pages, the completions and the config file all read this table.
// Options are read in two steps. Step one, Options: a verb names its options, and fill_targets() (parse_words.h) fills Raw*
// structures with the text that the caller typed. Step two, resolve_*: the text becomes values, or an Error that names the option and shows a good
// value.
// Suggests a known word for one that the user mistyped.
#pragma once

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/result.h"
#include "base/text.h"

#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock::cli {

using Text = std::optional<std::string>;  // missing: the option was not given; "": it was given an empty value

// What help says of one option. The string is made only when help is shown, because parsing does not need it.
class HelpText {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr HelpText(const char* text) : m_text(text) {}
  constexpr HelpText(const char* text, Millis default_value) : m_text(text), m_more(default_value) {}
  constexpr HelpText(const char* text, ExitCode default_value) : m_text(text), m_more(default_value) {}
  constexpr HelpText(const char* text, const char* more) : m_text(text), m_more(more) {}
  template <std::convertible_to<std::string (*)()> Make>
  constexpr HelpText(Make make) : m_more(static_cast<std::string (*)()>(make))  // NOLINT(google-explicit-constructor)
  {
  }

  [[nodiscard]] std::string str() const;  // "text (default)", "text; more"

 private:
  const char* m_text = "";
  std::variant<std::monostate, Millis, ExitCode, const char*, std::string (*)()> m_more;
};

inline constexpr std::string_view default_group = "Options";

struct Option {
  // Where the value goes: the last one counts, all count, a flag was given, or the function is called for each occurrence.
  using Target = std::variant<Text*, std::vector<std::string>*, bool*, std::function<void()>>;

  std::string_view names;       // "-w,--wait"
  std::string_view value_name;  // "DUR"; empty: a flag
  std::string_view group;       // its heading in help; empty: help does not show the option
  HelpText help;
  Target target;

  [[nodiscard]] bool takes_value() const { return !value_name.empty(); }
  [[nodiscard]] bool has_name(std::string_view name) const;         // "-w", "--wait"
  [[nodiscard]] std::vector<std::string_view> short_names() const;  // "-w"
  [[nodiscard]] std::vector<std::string_view> long_names() const;   // "--wait"
};

// Not copied, because tables are large.
class OptionTable {
 public:
  OptionTable() = default;
  explicit OptionTable(std::string_view verb) : m_verb(verb) {}
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  void add(Option option);
  [[nodiscard]] const Option* find(std::string_view name) const;  // by "--wait" or "-w"; nullptr: there is none
  [[nodiscard]] const std::vector<Option>& all() const { return m_options; }
  [[nodiscard]] std::vector<std::string_view> groups() const;  // in the order of their first options

  // "--wait" of each option.
  [[nodiscard]] std::vector<std::string> long_names() const;
  [[nodiscard]] std::string_view verb() const { return m_verb; }  // its name

 private:
  std::string_view m_verb;
  std::vector<Option> m_options;
};

// Step one. `names`: "-w,--wait". `target` must outlive the parsing. When an option is given twice the last value counts, as
// with getopt.
class Options {
 public:
  explicit Options(OptionTable& table) : m_table(table) {}  // `table` must outlive this object
  [[nodiscard]] Options in(std::string_view group) const;   // the same under a heading of help; "": hidden from help

  void text(const char* names, Text& target, const char* value_name, const HelpText& help);
  void texts(const char* names, std::vector<std::string>& target, const char* value_name, const HelpText& help);
  void flag(const char* names, bool& target, const HelpText& help);
  // Calls `seen` for each occurrence, in order, without the value. An empty `value_name`: a flag.
  void each(const char* names, std::string_view value_name, const std::function<void()>& seen, const HelpText& help);

 private:
  OptionTable& m_table;
  std::string_view m_group = default_group;
};

// Step two.
Error usage(std::string text);

// A word as errors quote it: escaped, without secrets, and shortened when it is long.
std::string shown_word(std::string_view word);

struct DurationRule {
  std::string_view option;
  Millis least;
  Millis most;
  std::string_view good;  // a good value
};
Result<Millis> resolve_duration(std::string_view raw, const DurationRule& rule);

struct NumberRule {
  std::string_view option;
  int least;
  int most;
  std::string_view good;
};
Result<int> resolve_number(std::string_view raw, const NumberRule& rule);

template <typename T>
struct Choice {
  std::string_view word;
  T value;
};
template <typename T, std::size_t N>
Result<T> resolve_choice(std::string_view raw, std::string_view option, const std::array<Choice<T>, N>& choices)
{
  std::string words;
  for (const auto& choice : choices) {
    if (choice.word == raw) {
      return choice.value;
    }
    words += (words.empty() ? "" : ", ") + std::string(choice.word);
  }
  return usage(std::string(option) + ": '" + shown_word(raw) + "' is none of " + words);
}

// The first error of several, in their order.
Result<Done> first_error(std::initializer_list<Result<Done>> results);

// Assigns a value to `target`, or hands the error on.
template <typename T, typename Target>
Result<Done> assign(Result<T> value, Target& target)
{
  if (!value) {
    return value.error();
  }
  target = *std::move(value);
  return Done{};
}

// " (did you mean 'status'?)", or `otherwise` when no known word is similar.
std::string did_you_mean(std::string_view typed, std::span<const std::string> known, std::string_view otherwise);

}  // namespace rlock::cli
