// SPDX-License-Identifier: Apache-2.0
// The options of one verb as values: how they are typed, what help says of them, and where their values go. Parsing, help,
// the manual pages, the completions and the config file all read this table.
#pragma once

#include "base/clock.h"
#include "base/exit_code.h"

#include <concepts>
#include <functional>
#include <optional>
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

}  // namespace rlock::cli
