// SPDX-License-Identifier: Apache-2.0
// Options are read in two steps. Step one, Options: a verb names its options, and CLI11 fills Raw* structures with the text
// that the caller typed. Step two, resolve_*: the text becomes values, or an Error that names the option and shows a good
// value.
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

namespace CLI {
class App;
class Option;
}  // namespace CLI

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

// Step one. `names` in CLI11's notation: "-w,--wait". `target` must outlive the parsing. When an option is given twice the
// last value counts, as with getopt.
class Options {
 public:
  // `app` must outlive this object.
  explicit Options(CLI::App& app) : m_app(&app) {}
  // Adds only the options that can occur in `args`, which must outlive this object: adding all options of `run` takes half
  // the instructions of its start.
  Options(CLI::App& app, std::span<const std::string> args) : m_app(&app), m_args(args) {}
  [[nodiscard]] Options in(const char* group) const;  // the same under a heading of help; "": hidden from help

  void text(const char* names, Text& target, const char* value_name, const HelpText& help);
  void texts(const char* names, std::vector<std::string>& target, const char* value_name, const HelpText& help);
  void flag(const char* names, bool& target, const HelpText& help);
  // Calls `seen` for each occurrence, in order, without the value. `value_name` nullptr: a flag.
  void each(const char* names, const char* value_name, const std::function<void()>& seen, const HelpText& help);

 private:
  [[nodiscard]] bool may_occur(std::string_view names) const;
  void show(CLI::Option* option) const;

  CLI::App* m_app;
  std::optional<std::span<const std::string>> m_args;
  const char* m_group = nullptr;
};

// Step two.
Error usage(std::string text);

// A word as errors quote it: escaped, and shortened when it is long.
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

}  // namespace rlock::cli
