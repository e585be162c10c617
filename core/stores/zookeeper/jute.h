// SPDX-License-Identifier: Apache-2.0
// Jute, the encoding of ZooKeeper: numbers in network byte order, texts with their length before them. Private to
// stores/zookeeper.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlock::zookeeper {

class JuteWriter {
 public:
  JuteWriter& small(std::int32_t number);
  JuteWriter& number(std::int64_t number);
  JuteWriter& flag(bool is_set);
  JuteWriter& text(std::string_view bytes);  // a text, or a buffer
  JuteWriter& append(std::string_view encoded);
  [[nodiscard]] const std::string& bytes() const { return m_bytes; }

 private:
  std::string m_bytes;
};

// Reads what a server sent. After the first field that is missing or invalid, is_good() is false and each field is empty or 0.
class JuteReader {
 public:
  explicit JuteReader(std::string_view bytes) : m_rest(bytes) {}
  std::int32_t small()
  {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(big_endian(sizeof(std::int32_t))));
  }
  std::int64_t number() { return static_cast<std::int64_t>(big_endian(sizeof(std::int64_t))); }
  bool flag() { return big_endian(1) != 0; }
  std::string text();  // a length of -1, a null, counts as empty
  // The number of elements of a list, each of which has `least` bytes or more.
  std::int32_t count(std::size_t least);
  [[nodiscard]] bool is_good() const { return m_is_good; }
  [[nodiscard]] std::string_view rest() const { return m_rest; }

 private:
  std::uint64_t big_endian(std::size_t size);
  void fail();

  std::string_view m_rest;
  bool m_is_good = true;
};

}  // namespace rlock::zookeeper
