// SPDX-License-Identifier: Apache-2.0
// Options in two stages. First what was typed: text, nothing else. Then what it means: values, or
// an Error that names the option and shows a good value.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rlock::cli {

using Text = std::optional<std::string>;  // missing: not typed; "" was

// Stage one. `names` as CLI11 wants them: "-w,--wait". `target` must outlive the parsing. Of an
// option given twice the last one counts, as with getopt.
CLI::Option* add_text(CLI::App& app, const char* names, Text& target, const char* value_name,
                      const char* help);
CLI::Option* add_texts(CLI::App& app, const char* names, std::vector<std::string>& target,
                       const char* value_name, const char* help);
CLI::Option* add_flag(CLI::App& app, const char* names, bool& target, const char* help);

// Stage two.
Error usage(std::string text);

struct DurationRule {
  std::string_view option;
  Millis least;
  Millis most;
  std::string_view good;  // a good value
};
Result<Millis> meant_duration(std::string_view typed, const DurationRule& rule);

struct NumberRule {
  std::string_view option;
  int least;
  int most;
  std::string_view good;
};
Result<int> meant_number(std::string_view typed, const NumberRule& rule);

template <typename T>
struct Choice {
  std::string_view word;
  T value;
};
template <typename T, std::size_t N>
Result<T> meant_choice(std::string_view typed, std::string_view option,
                       const std::array<Choice<T>, N>& choices)
{
  std::string words;
  for (const auto& choice : choices) {
    if (choice.word == typed) {
      return choice.value;
    }
    words += (words.empty() ? "" : ", ") + std::string(choice.word);
  }
  return usage(std::string(option) + ": '" + printable(typed) + "' is none of " + words);
}

}  // namespace rlock::cli
