// SPDX-License-Identifier: Apache-2.0
#include "support/redis_protocol.h"

namespace rlock::test {

std::vector<std::string> take_request(std::string& bytes)
{
  std::size_t at = 0;
  const auto number = [&]() -> long {
    const std::size_t end = bytes.find("\r\n", at);
    if (end == std::string::npos) {
      return -1;
    }
    const long value = std::stol(bytes.substr(at + 1, end - at - 1));
    at = end + 2;
    return value;
  };
  std::vector<std::string> words;
  const long count = number();
  for (long i = 0; i < count; ++i) {
    const long size = number();
    if (size < 0 || at + static_cast<std::size_t>(size) + 2 > bytes.size()) {
      return {};
    }
    words.push_back(bytes.substr(at, static_cast<std::size_t>(size)));
    at += static_cast<std::size_t>(size) + 2;
  }
  if (count > 0) {
    bytes.erase(0, at);
  }
  return words;
}

std::string encoded(const Reply& reply)
{
  switch (reply.kind) {
    case Reply::Kind::nil: return "$-1\r\n";
    case Reply::Kind::integer: return ":" + std::to_string(reply.integer) + "\r\n";
    case Reply::Kind::text: return "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
    case Reply::Kind::error: return "-" + reply.text + "\r\n";
    case Reply::Kind::array: break;
  }
  std::string all = "*" + std::to_string(reply.elements.size()) + "\r\n";
  for (const Reply& element : reply.elements) {
    all += encoded(element);
  }
  return all;
}

}  // namespace rlock::test
