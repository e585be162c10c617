// SPDX-License-Identifier: Apache-2.0
#include "cli/options/toml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

#define TOML_ENABLE_FORMATTERS 0
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace rlock::cli {
namespace {

Error wrong(const toml::source_region& where, const std::string& what)
{
  return {ErrorCode::config, std::to_string(where.begin.line) + ": " + what};
}

std::string text_of(double number)
{
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

// nullopt: a table, an array or a date.
std::optional<std::string> text_of(const toml::node& node)
{
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  if (const auto* number = node.as_integer()) {
    return std::to_string(number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return text_of(number->get());
  }
  if (const auto* boolean = node.as_boolean()) {
    return boolean->get() ? "true" : "false";
  }
  return std::nullopt;
}

class Reader {
 public:
  Result<std::vector<TomlEntry>> read(const toml::table& file)
  {
    for (const auto& [key, node] : file) {
      const toml::table* const table = node.as_table();
      const Result<Done> done =
          table != nullptr ? read_table(std::string(key.str()), *table) : read_entry({}, key, node);
      if (!done) {
        return done.error();
      }
    }
    std::ranges::stable_sort(m_entries, {}, &TomlEntry::line);
    return std::move(m_entries);
  }

 private:
  Result<Done> read_table(const std::string& name, const toml::table& table)
  {
    for (const auto& [key, node] : table) {
      const Result<Done> done = read_entry({.table = name, .table_line = table.source().begin.line}, key, node);
      if (!done) {
        return done;
      }
    }
    return Done{};
  }

  struct Place {
    std::string table;
    std::size_t table_line = 0;
  };

  Result<Done> read_entry(const Place& place, const toml::key& key, const toml::node& node)
  {
    Result<TomlValue> value = value_of(key, node);
    if (!value) {
      return value.error();
    }
    const std::size_t line = node.source().begin.line;
    m_entries.push_back({.table = place.table,
                         .key = std::string(key.str()),
                         .value = *std::move(value),
                         .line = line,
                         .table_line = place.table_line != 0 ? place.table_line : line});
    return Done{};
  }

  static Result<TomlValue> value_of(const toml::key& key, const toml::node& node)
  {
    const toml::array* const array = node.as_array();
    if (array == nullptr) {
      const auto text = text_of(node);
      const auto kind = node.is_boolean() ? TomlValue::Kind::boolean : TomlValue::Kind::text;
      return text ? Result(TomlValue{kind, {*text}}) : no_value(key, node);
    }
    TomlValue all{TomlValue::Kind::array, {}};
    for (const toml::node& element : *array) {
      const auto text = text_of(element);
      if (!text) {
        return no_value(key, element);
      }
      all.texts.push_back(*text);
    }
    return all;
  }

  static Result<TomlValue> no_value(const toml::key& key, const toml::node& node)
  {
    return wrong(node.source(), "the value of " + shown_name(key.str()) +
                                    " is invalid: an option takes text, a number, true or false");
  }

  std::vector<TomlEntry> m_entries;
};

}  // namespace

std::string shown_name(std::string_view name)
{
  constexpr std::size_t longest = 64;
  const auto is_bare = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  const bool is_name = !name.empty() && name.size() <= longest && std::ranges::all_of(name, is_bare);
  return is_name ? std::string(name) : "...";
}

// The library's own words quote what may be a secret.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text)
{
  const toml::parse_result file = toml::parse(text);
  if (!file) {
    const bool is_repeated = file.error().description().find("redefine") != std::string_view::npos;
    return wrong(file.error().source(), is_repeated
                                            ? "a name is given twice"
                                            : "this is no valid TOML; text stands in quotes (try wait = \"10s\")");
  }
  return Reader().read(file.table());
}

}  // namespace rlock::cli
