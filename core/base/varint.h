// SPDX-License-Identifier: Apache-2.0
// A number as bytes of 7 bits each, the lowest first. The top bit of a byte says that another one follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

inline constexpr unsigned varint_bits = 7;
inline constexpr std::uint64_t varint_more = 1U << varint_bits;

inline void put_varint(std::string& bytes, std::uint64_t number)
{
  for (; number >= varint_more; number >>= varint_bits) {
    bytes += static_cast<char>(number | varint_more);
  }
  bytes += static_cast<char>(number);
}

// Takes the number off the front of `bytes`. nullopt: they end before it does, or it has more than 64 bits.
inline std::optional<std::uint64_t> take_varint(std::string_view& bytes)
{
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += varint_bits) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= (byte & (varint_more - 1)) << shift;
    if (byte < varint_more) {
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace rlock
