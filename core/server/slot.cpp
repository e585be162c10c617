// SPDX-License-Identifier: Apache-2.0
#include "server/slot.h"

#include <cstdint>

namespace rlock {
namespace {

std::string_view tag_of(std::string_view name)
{
  const auto open = name.find('{');
  const auto close = open == std::string_view::npos ? open : name.find('}', open);
  const bool has_tag = close != std::string_view::npos && close > open + 1;
  return has_tag ? name.substr(open + 1, close - open - 1) : name;
}

// CRC-16/XMODEM
std::uint16_t crc16(std::string_view bytes)
{
  constexpr std::uint32_t polynomial = 0x1021;
  std::uint32_t crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000) != 0 ? (crc << 1) ^ polynomial : crc << 1;
    }
  }
  return static_cast<std::uint16_t>(crc);
}

}  // namespace

unsigned slot_of(std::string_view name) { return crc16(tag_of(name)) % slot_count; }

}  // namespace rlock
