// SPDX-License-Identifier: Apache-2.0
// Bytes and numbers as hexadecimal digits, in lower case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlock {

inline std::string hex_pair(unsigned char byte)
{
  constexpr std::string_view digits = "0123456789abcdef";
  return {digits[byte >> 4U], digits[byte & 15U]};
}

// Two digits for each byte.
inline std::string hex_of(std::string_view bytes)
{
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += hex_pair(static_cast<unsigned char>(byte));
  }
  return text;
}

// 16 digits.
inline std::string hex_of(std::uint64_t number)
{
  std::string text;
  for (int shift = 56; shift >= 0; shift -= 8) {
    text += hex_pair(static_cast<unsigned char>(number >> shift & 0xFFU));
  }
  return text;
}

}  // namespace rlock
