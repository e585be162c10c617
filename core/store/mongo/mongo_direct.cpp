// SPDX-License-Identifier: Apache-2.0
#include "store/mongo/mongo_direct.h"

#include <utility>

namespace rlock::mongo {
namespace {

constexpr std::uint32_t op_msg = 2013;
constexpr std::size_t head_size = 21;  // four numbers, the flags, the kind of the only section
constexpr std::size_t number_size = 4;

void append(std::string& bytes, std::uint32_t number)
{
  for (int shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(number >> shift & 0xFFU);
  }
}

std::uint32_t number_at(std::string_view bytes, std::size_t at)
{
  std::uint32_t number = 0;
  for (std::size_t i = number_size; i-- > 0;) {
    number = number << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return number;
}

}  // namespace

std::string message_of(std::uint32_t number, const Document& command)
{
  const std::string document = command.bytes();
  std::string message;
  append(message, static_cast<std::uint32_t>(head_size + document.size()));
  append(message, number);
  append(message, 0);  // it answers nothing
  append(message, op_msg);
  append(message, 0);  // flags
  message += '\0';     // the section is a document
  return message + document;
}

Received received_in(std::string_view bytes, std::uint32_t number)
{
  if (bytes.size() < number_size) {
    return {};
  }
  const std::size_t size = number_at(bytes, 0);
  if (size < head_size + number_size || size > longest_answer) {
    return {.kind = Received::Kind::nonsense};
  }
  if (bytes.size() < size) {
    return {};
  }
  const std::size_t length = number_at(bytes, head_size);
  const bool is_plain = number_at(bytes, 12) == op_msg && number_at(bytes, 16) == 0 && bytes[20] == '\0';
  if (!is_plain || number_at(bytes, 8) != number || length != size - head_size) {
    return {.kind = Received::Kind::nonsense};
  }
  return {.kind = Received::Kind::answer, .document = std::string(bytes.substr(head_size, length)), .size = size};
}

Result<Done> DirectConnection::connect(const CallLimits& limit)
{
  drop();
  // libmongoc logs in before the first command, and the first hello is none.
  for (int hellos = 0; hellos < 2; ++hellos) {
    if (const auto server = m_connection.hello(limit); !server) {
      return server.error();
    }
  }
  return Done{};
}

Error DirectConnection::lost()
{
  drop();
  return {.code = ErrorCode::unreachable, .text = "lost the connection to " + spec().url, .was_there = true};
}

Result<Done> DirectConnection::send(Document command)
{
  command.add("$db", spec().database);
  m_number += 1;
  const OpenStream* const stream = m_connection.stream();
  return stream != nullptr && write_now(*stream, message_of(m_number, command)) ? Result(Done{}) : Result<Done>(lost());
}

Result<std::optional<Answer>> DirectConnection::receive()
{
  const OpenStream* const stream = m_connection.stream();
  const bool is_open = stream != nullptr && read_now(*stream, m_bytes, longest_answer);
  Received received = received_in(m_bytes, m_number);
  switch (received.kind) {
    case Received::Kind::nonsense: return lost();
    case Received::Kind::part: return is_open ? Result(std::optional<Answer>()) : lost();
    case Received::Kind::answer: break;
  }
  m_bytes.erase(0, received.size);
  return std::optional(Answer(std::move(received.document)));
}

int DirectConnection::fd() const
{
  const OpenStream* const stream = m_connection.stream();
  return stream == nullptr ? -1 : descriptor_of(*stream);
}

void DirectConnection::drop()
{
  m_connection.drop();
  m_bytes.clear();
}

}  // namespace rlock::mongo
