// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include "base/hex.h"
#include "base/server_schemes.h"

namespace rlock {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};
constexpr Range unprintable[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
                                 {0x200b, 0x200b}, {0x200e, 0x200f}, {0x202a, 0x202e},
                                 {0x2060, 0x2060}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};

// The code point of a character of at most three bytes of valid UTF-8.
std::uint32_t code_point(std::string_view character)
{
  constexpr std::uint32_t head_bits[] = {0x7f, 0x1f, 0x0f};
  std::uint32_t code = static_cast<unsigned char>(character.front()) & head_bits[character.size() - 1];
  for (const char tail : character.substr(1)) {
    code = (code << 6) | (static_cast<unsigned char>(tail) & 0x3fU);
  }
  return code;
}

std::string escaped_bytes(std::string_view bytes)
{
  std::string out;
  for (const char c : bytes) {
    out += "\\x" + hex_pair(static_cast<unsigned char>(c));
  }
  return out;
}

std::string escaped(std::string_view text, bool doubles_backslash)
{
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (character == "\n" || character == "\t") {
      out += character == "\n" ? "\\n" : "\\t";
    } else if (character == "\\" && doubles_backslash) {
      out += "\\\\";
    } else if (length == 0 || begins_with_unprintable(text)) {
      out += escaped_bytes(character);
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

std::size_t utf8_length(std::string_view text)
{
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto is_tail = [&](std::size_t i) { return i < text.size() && !begins_character(text[i]); };
  const unsigned head = byte(0);
  if (head < 0x80) {
    return text.empty() ? 0 : 1;
  }
  if (head >= 0xc2 && head < 0xe0) {
    return is_tail(1) ? 2 : 0;
  }
  if (head >= 0xe0 && head < 0xf0) {
    const bool bad = (head == 0xe0 && byte(1) < 0xa0) || (head == 0xed && byte(1) >= 0xa0);
    return !bad && is_tail(1) && is_tail(2) ? 3 : 0;
  }
  const bool bad = head < 0xf0 || head > 0xf4 || (head == 0xf0 && byte(1) < 0x90) || (head == 0xf4 && byte(1) >= 0x90);
  return !bad && is_tail(1) && is_tail(2) && is_tail(3) ? 4 : 0;
}

bool begins_with_unprintable(std::string_view text)
{
  const std::size_t length = utf8_length(text);
  if (length == 0 || length > 3) {
    return false;
  }
  const std::uint32_t code = code_point(text.substr(0, length));
  const auto is_in = [&](const Range& range) { return code >= range.first && code <= range.last; };
  return std::any_of(std::begin(unprintable), std::end(unprintable), is_in);
}

std::string printable(std::string_view text) { return escaped(text, true); }

std::string without_controls(std::string_view text) { return escaped(text, false); }

std::int64_t leading_number(std::string_view text)
{
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view trimmed(std::string_view text)
{
  constexpr std::string_view blanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator)
{
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_ended(std::string_view text, char separator)
{
  auto parts = split(text, separator);
  if (parts.back().empty()) {
    parts.pop_back();
  }
  return parts;
}

std::string_view cut_to(std::string_view text, std::size_t most)
{
  std::size_t size = std::min(text.size(), most);
  while (size > 0 && size < text.size() && !begins_character(text[size])) {
    --size;
  }
  return text.substr(0, size);
}

std::string shortened(std::string_view text, std::size_t most)
{
  return std::string(cut_to(text, most)) + (text.size() > most ? "..." : "");
}

std::string json_escape(std::string_view character)
{
  const std::uint32_t code = code_point(character);
  return "\\u" + hex_pair(static_cast<unsigned char>(code >> 8)) + hex_pair(static_cast<unsigned char>(code & 0xffU));
}

std::string json_text(std::string_view text)
{
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (character == "\"" || character == "\\") {
      out += "\\" + std::string(character);
    } else if (begins_with_unprintable(character)) {
      out += json_escape(character);
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out + "\"";
}

bool is_control(char c)
{
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::string_view blanks = " \t\r\n";
constexpr int most_rounds = 4;  // of masking; two suffice for all that was seen

bool is_blank(char c) { return blanks.find(c) != npos; }

bool is_name_char(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || std::string_view("_-.[]").find(c) != npos;
}

bool is_secret_name(std::string_view name)
{
  constexpr std::array<std::string_view, 6> parts{"password", "passwd", "secret", "token", "api-key", "apikey"};
  std::string plain(name);
  std::transform(plain.begin(), plain.end(), plain.begin(), [](char c) {
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return plain.find(part) != npos; });
}

bool is_secret_option(std::string_view name) { return name.starts_with('-') && is_secret_name(name); }

// The size of the name that the text begins with.
std::size_t name_size(std::string_view text)
{
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_name_char) - text.begin());
}

// The size of the assignment sign that the text begins with: "=", "+=", ":="; 0: there is none.
std::size_t assignment_size(std::string_view after_name)
{
  if (after_name.starts_with('=')) {
    return 1;
  }
  return after_name.starts_with("+=") || after_name.starts_with(":=") ? 2 : 0;
}

// Whether the text ends with the scheme of a server of rlock, whose URLs have no '@' after the host.
bool ends_with_own_scheme(std::string_view text)
{
  return std::ranges::any_of(server_schemes, [&](const ServerScheme& scheme) { return text.ends_with(scheme.name); });
}

// The offset of the '@' after the credentials of a URL; 0: the URL has none. `rest` follows "://". A password may
// contain an unescaped '/', '?' or '#': the text before that character is either a host and a port, or a part of the
// credentials.
std::size_t credentials_end(std::string_view scheme, std::string_view rest)
{
  rest = rest.substr(0, rest.find_first_of(" \t\r\n\"'"));
  if (ends_with_own_scheme(scheme)) {
    const auto at = rest.rfind('@');
    return at == npos ? 0 : at;
  }
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (const auto at = authority.rfind('@'); at != npos) {
    return at;
  }
  const auto colon = authority.rfind(':');
  const bool is_host =
      colon == npos || authority.starts_with('[') ||
      (colon > 0 && std::all_of(authority.begin() + static_cast<std::ptrdiff_t>(colon) + 1, authority.end(), is_digit));
  const auto at = is_host ? npos : rest.rfind('@');
  return at == npos ? 0 : at;
}

std::string without_credentials(std::string_view text)
{
  constexpr std::string_view scheme_end = "://";
  std::string out;
  for (;;) {
    const auto found = text.find(scheme_end);
    if (found == npos) {
      return out.append(text);
    }
    const auto start = found + scheme_end.size();
    const auto credentials = credentials_end(text.substr(0, found), text.substr(start));
    out.append(text.substr(0, start)).append(credentials > 0 ? masked : "");
    text.remove_prefix(start + credentials);
  }
}

// Reads a command line as a shell does, as far as needed to find the end of a value.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : m_text(text) {}

  std::string masked_text()
  {
    while (m_at < m_text.size()) {
      if (is_name_char(m_text[m_at])) {
        take_name();
      } else {
        note_quote();
        copy(1);
      }
    }
    return std::move(m_out);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return m_text.substr(m_at); }

  void copy(std::size_t count)
  {
    m_out.append(m_text.substr(m_at, count));
    m_at = std::min(m_at + count, m_text.size());
  }

  void note_quote()
  {
    const char c = m_text[m_at];
    if (c == '\\' && m_quote != '\'') {
      copy(1);
    } else if (m_quote == '\0' && (c == '"' || c == '\'')) {
      m_quote = c;
    } else if (c == m_quote) {
      m_quote = '\0';
    }
  }

  void take_name()
  {
    const std::string_view name = rest().substr(0, name_size(rest()));
    copy(name.size());
    const std::size_t sign = assignment_size(rest());
    if (sign > 0 && is_secret_name(name)) {
      copy(sign);
      mask_value();
    } else if (sign == 0 && is_secret_option(name)) {
      mask_next_words();
    }
  }

  // The value may itself be a secret option, whose value is then masked as well.
  void mask_next_words()
  {
    for (bool is_option = true; is_option;) {
      const std::size_t gap = std::min(rest().find_first_not_of(blanks), rest().size());
      const std::string_view word = rest().substr(gap);
      if (gap == 0 || word.empty() || std::string_view(";|&)").find(word.front()) != npos) {
        return;
      }
      copy(gap);
      is_option = is_secret_option(word.substr(0, name_size(word)));
      mask_value();
    }
  }

  void mask_value()
  {
    const std::size_t start = m_at;
    if (is_masked()) {
      return copy(masked.size());
    }
    m_at = m_quote != '\0' ? quote_end(m_quote) : word_end();
    m_out.append(m_at > start ? masked : "");
  }

  // Whether the value is a mask in a quoted script: then the script goes on behind the mask.
  [[nodiscard]] bool is_masked() const
  {
    constexpr std::string_view ends = " \t\r\n'\"";
    if (m_quote == '\0' || !rest().starts_with(masked)) {
      return false;
    }
    const std::string_view behind = rest().substr(masked.size());
    const auto end = behind.find_first_not_of(";|&)");
    return end != npos && ends.find(behind[end]) != npos;
  }

  // The offset of the closing quote.
  [[nodiscard]] std::size_t quote_end(char quote, std::size_t from = npos) const
  {
    std::size_t at = from == npos ? m_at : from;
    while (at < m_text.size() && m_text[at] != quote) {
      at += m_text[at] == '\\' && quote == '"' ? 2 : 1;
    }
    return std::min(at, m_text.size());
  }

  [[nodiscard]] std::size_t word_end() const
  {
    std::size_t at = m_at;
    while (at < m_text.size() && !is_blank(m_text[at]) && !ends_command(at) && !begins_parameter(at)) {
      const char c = m_text[at];
      at = c == '\\' ? at + 2 : c == '"' || c == '\'' ? quote_end(c, at + 1) + 1 : at + 1;
    }
    return std::min(at, m_text.size());
  }

  // The last separator of a word: "x; make", but not "x;y".
  [[nodiscard]] bool ends_command(std::size_t at) const
  {
    const auto end = m_text.find_first_not_of(";|&", at);
    return end != at && (end == npos || is_blank(m_text[end]));
  }

  // "&name=" of a URL.
  [[nodiscard]] bool begins_parameter(std::size_t at) const
  {
    const std::string_view name = m_text.substr(std::min(at + 1, m_text.size()));
    const std::size_t size = name_size(name);
    return m_text[at] == '&' && size > 0 && name.substr(size).starts_with('=');
  }

  const std::string_view m_text;
  std::size_t m_at = 0;
  char m_quote = '\0';
  std::string m_out;
};

// The value of an assignment at the start of a word is the rest of the word, whatever characters it has. Also in
// "--env=TOKEN=V".
std::string masked_word(std::string_view word)
{
  for (std::size_t at = 0; at < word.size() && !is_blank(word[at]);) {
    const std::size_t size = name_size(word.substr(at));
    const std::size_t sign = assignment_size(word.substr(at + size));
    if (sign > 0 && is_secret_name(word.substr(at, size))) {
      const std::string_view before = word.substr(0, at + size + sign);
      return without_credentials(before) + std::string(before.size() < word.size() ? masked : "");
    }
    at += std::max<std::size_t>(size, 1);
  }
  return without_secrets(word);
}

// -c, -lc, --command: the next word is a script.
bool announces_script(std::string_view word)
{
  return word == "--command" || (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.ends_with('c'));
}

}  // namespace

// Masks twice, because a masked place may make another place look like the credentials of a URL.
std::string without_secrets(std::string_view text)
{
  std::string shown(text);
  for (int round = 0; round < most_rounds; ++round) {
    std::string next = Scanner(without_credentials(shown)).masked_text();
    if (next == shown) {
      break;
    }
    shown = std::move(next);
  }
  return shown;
}

namespace {

bool is_plain_word(std::string_view word)
{
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  return word.find_first_not_of(plain) == npos;
}

// The mask of a secret needs no quotes.
std::string shown_word(const std::string& word)
{
  std::string rest = word;
  for (auto at = rest.find(masked); at != npos; at = rest.find(masked)) {
    rest.erase(at, masked.size());
  }
  return !word.empty() && is_plain_word(rest) ? word : copied_word(word);
}

}  // namespace

std::string shown_command(std::span<const std::string> words)
{
  std::string shown;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view before = i > 0 ? std::string_view(words[i - 1]) : "";
    const bool is_value = is_secret_option(before) && before.find('=') == npos;
    shown += i > 0 ? " " : "";
    shown += shown_word(is_value                   ? std::string(masked)
                        : announces_script(before) ? without_secrets(words[i])
                                                   : masked_word(words[i]));
  }
  return shown;
}

std::string shell_quoted(std::string_view text)
{
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string copied_word(std::string_view text)
{
  if (without_controls(text) == text) {
    return !text.empty() && is_plain_word(text) ? std::string(text) : shell_quoted(text);
  }
  std::string word = "$'";
  for (const char c : printable(text)) {
    word += c == '\'' ? "\\x27" : std::string(1, c);
  }
  return word + "'";
}

}  // namespace rlock
