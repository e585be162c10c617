// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <cstddef>

namespace rlock {
namespace {

void append_hex(std::string& out, unsigned char byte)
{
  constexpr char digits[] = "0123456789abcdef";
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

// How many bytes the character at the beginning has; 0: it is none. As Unicode wants it: the shortest form, no surrogates.
std::size_t utf8_length(std::string_view text)
{
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto is_tail = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned head = byte(0);
  if (head < 0x80) {
    return 1;
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

std::string control_escape(char c)
{
  constexpr char digits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("\\u00") + digits[byte >> 4] + digits[byte & 15];
}

}  // namespace

std::string printable(std::string_view text)
{
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() &&
                    static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                    static_cast<unsigned char>(text[i + 1]) <= 0x9f;
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\\') {
      out += "\\\\";
    } else if (byte < 0x20 || byte == 0x7f) {
      append_hex(out, byte);
    } else if (c1) {
      append_hex(out, byte);
      append_hex(out, static_cast<unsigned char>(text[++i]));
    } else {
      out += text[i];
    }
  }
  return out;
}

namespace {

std::string without_credentials(std::string_view text)
{
  constexpr std::string_view scheme_end = "://";
  std::string out;
  for (;;) {
    const auto at = text.find(scheme_end);
    if (at == std::string_view::npos) {
      return out.append(text);
    }
    const auto start = at + scheme_end.size();
    const auto end = std::min(text.find_first_of(" /?#\"'", start), text.size());
    const auto sign = text.substr(0, end).rfind('@');
    const bool secret = sign != std::string_view::npos && sign >= start;
    out.append(text.substr(0, start)).append(secret ? "***" : "");
    text.remove_prefix(secret ? sign : start);
  }
}

}  // namespace

std::string without_secrets(std::string_view text)
{
  constexpr std::string_view parameter = "sentinel_password=";
  std::string shown = without_credentials(text);
  for (auto at = shown.find(parameter); at != std::string::npos; at = shown.find(parameter, at + parameter.size())) {
    const auto value = at + parameter.size();
    shown.replace(value, std::min(shown.find_first_of(" &#\"'", value), shown.size()) - value, "***");
  }
  return shown;
}

std::string json_text(std::string_view text)
{
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += control_escape(c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

}  // namespace rlock
