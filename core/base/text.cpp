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

std::string without_secrets(std::string_view text)
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

}  // namespace rlock
