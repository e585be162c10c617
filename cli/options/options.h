// SPDX-License-Identifier: Apache-2.0
// Options in two stages. First what was typed: text, nothing else. Then what it means: values, or
// an Error that names the option and shows a good value.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rlock::cli {

using Text = std::optional<std::string>;  // missing: not typed; "" was

// Stage one: what a verb understands. `names` as CLI11 wants them: "-w,--wait". `target` must outlive the parsing. Of an
// option given twice the last one counts, as with getopt.
class Options {
 public:
  // `app` must outlive it.
  explicit Options(CLI::App& app) : m_app(&app) {}
  // Leaves out what cannot occur in `args`, which must outlive it: making all options of `run` is half the instructions
  // of its start (callgrind: 635,000 of 1,311,000).
  Options(CLI::App& app, std::span<const std::string> args) : m_app(&app), m_args(args) {}
  [[nodiscard]] Options in(const char* group) const;  // the same, under a heading; "": shown to nobody

  void text(const char* names, Text& target, const char* value_name, const char* help);
  void texts(const char* names, std::vector<std::string>& target, const char* value_name, const char* help);
  void flag(const char* names, bool& target, const char* help);
  // Called each time, in order; `value_name` missing: a flag. The value is not told.
  void each(const char* names, const char* value_name, const std::function<void()>& seen, const char* help);

 private:
  [[nodiscard]] bool may_occur(std::string_view names) const;
  void show(CLI::Option* option) const;

  CLI::App* m_app;
  std::optional<std::span<const std::string>> m_args;
  const char* m_group = nullptr;
};

// Stage two.
Error usage(std::string text);

// A typed word as an error quotes it: escaped, and cut when it is long.
std::string shown_word(std::string_view raw);

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

}  // namespace rlock::cli
