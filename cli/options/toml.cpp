// SPDX-License-Identifier: Apache-2.0
//
// Why rlock has a parser of its own: TOML++ reports a syntax error without the correction ("wait = 10s" becomes "Error while
// parsing decimal integer: expected digit, saw 's'"), so the advice of these errors would need a second parser. TOML++ does
// not keep a number as it stands in the file, and that text is the value of an option. It also adds 74 KiB of code.
#include "cli/options/toml.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

namespace rlock::cli {
namespace {

constexpr std::string_view end_of_word = " \t\r\n#,=]";

bool is_bare(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

bool is_number(std::string_view word)
{
  if (word.starts_with('-') || word.starts_with('+')) {
    word.remove_prefix(1);
  }
  const auto is_part = [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; };
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
         std::all_of(word.begin(), word.end(), is_part) && std::count(word.begin(), word.end(), '.') <= 1;
}

std::string utf8(std::uint32_t code)
{
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  const auto tail = [&](int shift) { return byte(0x80U | ((code >> shift) & 0x3fU)); };
  if (code < 0x80) {
    return {byte(code)};
  }
  if (code < 0x800) {
    return {byte(0xc0U | (code >> 6)), tail(0)};
  }
  if (code < 0x10000) {
    return {byte(0xe0U | (code >> 12)), tail(6), tail(0)};
  }
  return {byte(0xf0U | (code >> 18)), tail(12), tail(6), tail(0)};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : m_rest(text) {}

  Result<std::vector<TomlEntry>> parse()
  {
    for (skip_empty(); !m_rest.empty(); skip_empty()) {
      const Result<Done> line = peek() == '[' ? table() : entry();
      if (!line) {
        return line.error();
      }
      skip_blanks();
      if (!m_rest.empty() && peek() != '\n' && peek() != '#') {
        return wrong("there is more on this line than one setting");
      }
    }
    return std::move(m_entries);
  }

 private:
  [[nodiscard]] char peek() const { return m_rest.empty() ? '\n' : m_rest.front(); }

  void drop(std::size_t count = 1)
  {
    const std::string_view dropped = m_rest.substr(0, count);
    m_line += static_cast<std::size_t>(std::count(dropped.begin(), dropped.end(), '\n'));
    m_rest.remove_prefix(dropped.size());
  }

  void skip_blanks()
  {
    while (!m_rest.empty() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) {
      drop();
    }
  }

  void skip_empty()
  {
    for (skip_blanks(); !m_rest.empty() && (peek() == '\n' || peek() == '#'); skip_blanks()) {
      drop(peek() == '#' ? std::min(m_rest.find('\n'), m_rest.size()) : 1);
    }
  }

  [[nodiscard]] Error wrong(const std::string& what) const
  {
    return {ErrorCode::config, std::to_string(m_line) + ": " + what};
  }

  std::string bare()
  {
    const auto* const end = std::find_if_not(m_rest.begin(), m_rest.end(), is_bare);
    std::string word(m_rest.begin(), end);
    drop(word.size());
    return word;
  }

  Result<std::string> name()
  {
    if (peek() == '"' || peek() == '\'') {
      return quoted();
    }
    std::string word = bare();
    return word.empty() ? Result<std::string>(wrong("here should be a name (try wait = \"10s\")")) : std::move(word);
  }

  Result<Done> table()
  {
    drop();
    skip_blanks();
    Result<std::string> found = name();
    if (!found) {
      return found.error();
    }
    skip_blanks();
    if (peek() != ']') {
      return wrong("a table is the name of a verb in brackets (try [run])");
    }
    drop();
    m_table = *std::move(found);
    m_table_line = m_line;
    return Done{};
  }

  Result<Done> entry()
  {
    const std::size_t line = m_line;
    Result<std::string> key = name();
    if (!key) {
      return key.error();
    }
    skip_blanks();
    if (peek() != '=') {
      return wrong("after " + shown_name(*key) + " there should be = and a value (try wait = \"10s\")");
    }
    drop();
    skip_blanks();
    m_key = *key;
    Result<TomlValue> found = peek() == '[' ? array() : value();
    if (!found) {
      return found.error();
    }
    const bool again = std::any_of(m_entries.begin(), m_entries.end(), [&](const TomlEntry& earlier) {
      return earlier.table == m_table && earlier.key == *key;
    });
    if (again) {
      return wrong(shown_name(*key) + " is given twice");
    }
    m_entries.push_back({.table = m_table,
                         .key = *std::move(key),
                         .value = *std::move(found),
                         .line = line,
                         .table_line = m_table_line});
    return Done{};
  }

  Result<TomlValue> array()
  {
    TomlValue all{TomlValue::Kind::array, {}};
    drop();
    for (skip_empty(); peek() != ']' || m_rest.empty(); skip_empty()) {
      if (m_rest.empty()) {
        return wrong("the array has no end");
      }
      const Result<TomlValue> one = value();
      if (!one) {
        return one.error();
      }
      all.texts.push_back(one->texts.front());
      skip_empty();
      if (peek() == ',') {
        drop();
      } else if (peek() != ']') {
        return wrong("in an array there is a comma between values");
      }
    }
    drop();
    return all;
  }

  Result<TomlValue> value()
  {
    if (peek() == '"' || peek() == '\'') {
      Result<std::string> text = quoted();
      return text ? Result(TomlValue{TomlValue::Kind::text, {*std::move(text)}}) : Result<TomlValue>(text.error());
    }
    const std::string word(m_rest.substr(0, m_rest.find_first_of(end_of_word)));
    if (word == "true" || word == "false") {
      drop(word.size());
      return TomlValue{TomlValue::Kind::boolean, {word}};
    }
    if (is_number(word)) {
      drop(word.size());
      return TomlValue{TomlValue::Kind::text, {word}};
    }
    return wrong("the value of " + shown_name(m_key) + " is invalid: text stands in quotes (try wait = \"10s\")");
  }

  Result<std::string> quoted()
  {
    const char quote = peek();
    if (m_rest.starts_with(std::string(3, quote))) {
      return wrong("a text of several lines is no option's value (use one pair of quotes)");
    }
    drop();
    std::string text;
    while (peek() != quote) {
      if (peek() == '\n') {
        return wrong("the text has no end");
      }
      if (quote == '"' && peek() == '\\') {
        const Result<std::string> escaped = escape();
        if (!escaped) {
          return escaped.error();
        }
        text += *escaped;
      } else {
        text += peek();
        drop();
      }
    }
    drop();
    return text;
  }

  Result<std::string> escape()
  {
    constexpr std::string_view letters = "btnfre\"\\";
    constexpr std::string_view characters = "\b\t\n\f\r\x1b\"\\";
    drop();
    const char letter = peek();
    if (letter == 'u' || letter == 'U') {
      return code_point(letter == 'u' ? 4 : 8);
    }
    const auto at = letters.find(letter);
    if (at == std::string_view::npos) {
      return wrong(std::string("unknown escape \\") + printable(std::string(1, letter)) +
                   " (in single quotes a backslash is itself)");
    }
    drop();
    return std::string(1, characters[at]);
  }

  Result<std::string> code_point(std::size_t digits)
  {
    const std::string_view hex = m_rest.substr(1, digits);
    std::uint32_t code = 0;
    const auto [stopped, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    const bool is_whole = hex.size() == digits && error == std::errc{} && stopped == hex.data() + hex.size();
    if (!is_whole || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      return wrong("\\u is followed by the four digits of a character, \\U by eight");
    }
    drop(1 + digits);
    return utf8(code);
  }

  std::string_view m_rest;
  std::size_t m_line = 1;
  std::string m_key;  // of the value that is read
  std::string m_table;
  std::size_t m_table_line = 0;
  std::vector<TomlEntry> m_entries;
};

}  // namespace

std::string shown_name(std::string_view name)
{
  constexpr std::size_t longest = 64;
  const bool is_name = !name.empty() && name.size() <= longest && std::all_of(name.begin(), name.end(), is_bare);
  return is_name ? std::string(name) : "...";
}

Result<std::vector<TomlEntry>> parse_toml(std::string_view text) { return Parser(text).parse(); }

}  // namespace rlock::cli
