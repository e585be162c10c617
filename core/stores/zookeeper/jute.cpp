// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/jute.h"

namespace rlock::zookeeper {
namespace {

constexpr unsigned bits_of_byte = 8;

void append_big_endian(std::string& bytes, std::uint64_t number, std::size_t size)
{
  while (size > 0) {
    bytes += static_cast<char>(number >> (bits_of_byte * --size) & 0xFFU);
  }
}

}  // namespace

JuteWriter& JuteWriter::small(std::int32_t number)
{
  append_big_endian(m_bytes, static_cast<std::uint32_t>(number), sizeof number);
  return *this;
}

JuteWriter& JuteWriter::number(std::int64_t number)
{
  append_big_endian(m_bytes, static_cast<std::uint64_t>(number), sizeof number);
  return *this;
}

JuteWriter& JuteWriter::flag(bool is_set)
{
  m_bytes += static_cast<char>(is_set ? 1 : 0);
  return *this;
}

JuteWriter& JuteWriter::text(std::string_view bytes)
{
  small(static_cast<std::int32_t>(bytes.size()));
  m_bytes += bytes;
  return *this;
}

JuteWriter& JuteWriter::append(std::string_view encoded)
{
  m_bytes += encoded;
  return *this;
}

void JuteReader::fail()
{
  m_is_good = false;
  m_rest = {};
}

std::uint64_t JuteReader::big_endian(std::size_t size)
{
  if (m_rest.size() < size) {
    fail();
    return 0;
  }
  std::uint64_t number = 0;
  for (const char byte : m_rest.substr(0, size)) {
    number = number << bits_of_byte | static_cast<unsigned char>(byte);
  }
  m_rest.remove_prefix(size);
  return number;
}

std::string JuteReader::text()
{
  const std::int32_t size = small();
  if (size < -1 || (size > 0 && static_cast<std::size_t>(size) > m_rest.size())) {
    fail();
    return {};
  }
  const std::string bytes(m_rest.substr(0, size < 0 ? 0 : static_cast<std::size_t>(size)));
  m_rest.remove_prefix(bytes.size());
  return bytes;
}

std::int32_t JuteReader::count(std::size_t least)
{
  const std::int32_t elements = small();
  if (elements < -1 || (elements > 0 && static_cast<std::size_t>(elements) > m_rest.size() / least)) {
    fail();
    return 0;
  }
  return elements < 0 ? 0 : elements;
}

}  // namespace rlock::zookeeper
