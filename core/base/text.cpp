// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace rlock {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

std::string hex_pair(unsigned char byte) { return {hex_digits[byte >> 4], hex_digits[byte & 15]}; }

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

}  // namespace rlock
