// SPDX-License-Identifier: Apache-2.0
// Options are read in two steps. Step one, Options: a verb names its options, and fill_targets() (parse_words.h) fills Raw*
// structures with the text that the caller typed. Step two, resolve_*: the text becomes values, or an Error that names the option
// and shows a good value.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/options/option_table.h"

#include <array>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock::cli {

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
  std::variant<std::string_view, Millis> good;  // a value that the error shows
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

}  // namespace rlock::cli
