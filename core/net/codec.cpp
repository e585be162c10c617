// SPDX-License-Identifier: Apache-2.0
#include "net/codec.h"

#include "base/text.h"

#if __has_include(<hiredis/hiredis.h>)
#include <hiredis/hiredis.h>
#else
#include <hiredis.h>
#endif

#include <array>
#include <charconv>
#include <new>
#include <utility>
#include <vector>

namespace rlock {
namespace {

// The reply that is being built, and what it cost so far.
struct Unfinished {
  enum class Refused { nothing, size, type };
  std::size_t bytes = 0;
  std::size_t values = 0;
  Refused refused = Refused::nothing;
};

int depth_of(const redisReadTask* task)
{
  int depth = 0;
  for (; task->parent != nullptr; task = task->parent) {
    ++depth;
  }
  return depth;
}

// Adds a value to the array that it belongs to. nullptr, which hiredis reports as an error: refused. An array that is not
// finished is the last element of its own, so no element moves that hiredis still refers to.
Reply* add(const redisReadTask* task, Reply::Kind kind)
{
  auto& unfinished = *static_cast<Unfinished*>(task->privdata);
  if (++unfinished.values > most_values || depth_of(task) > deepest_array) {
    unfinished.refused = Unfinished::Refused::size;
    return nullptr;
  }
  if (task->parent == nullptr) {
    return new Reply{.kind = kind};
  }
  auto& elements = static_cast<Reply*>(task->parent->obj)->elements;
  return &elements.emplace_back(Reply{.kind = kind});
}

// Newer versions of hiredis know the types of RESP3, which Reply does not have.
Reply* refused_type(const redisReadTask* task)
{
  static_cast<Unfinished*>(task->privdata)->refused = Unfinished::Refused::type;
  return nullptr;
}

Reply* add_text(const redisReadTask* task, std::string_view text)
{
  const bool is_error = task->type == REDIS_REPLY_ERROR;
  if (!is_error && task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS) {
    return refused_type(task);
  }
  Reply* const reply = add(task, is_error ? Reply::Kind::error : Reply::Kind::text);
  if (reply != nullptr) {
    reply->text = text;
  }
  return reply;
}

// How hiredis builds a reply. Its own functions reserve memory for as many elements as a server announces, and newer versions
// nest arrays without a limit. The types of the functions differ between versions.
template <typename Functions>
constexpr Functions building_functions()
{
  Functions make{};
  make.createString = [](auto* task, auto* text, auto size) -> void* { return add_text(task, {text, size}); };
  make.createArray = [](auto* task, auto) -> void* {
    return task->type == REDIS_REPLY_ARRAY ? add(task, Reply::Kind::array) : refused_type(task);
  };
  make.createInteger = [](auto* task, auto value) -> void* {
    Reply* const reply = add(task, Reply::Kind::integer);
    if (reply != nullptr) {
      reply->integer = value;
    }
    return reply;
  };
  make.createNil = [](auto* task) -> void* { return add(task, Reply::Kind::nil); };
  if constexpr (requires { make.createDouble; }) {
    make.createDouble = [](auto* task, auto...) -> void* { return refused_type(task); };
    make.createBool = [](auto* task, auto...) -> void* { return refused_type(task); };
  }
  make.freeObject = [](void* reply) { delete static_cast<Reply*>(reply); };
  return make;
}

constinit redisReplyObjectFunctions building = building_functions<redisReplyObjectFunctions>();

Error not_resp(std::string_view why)
{
  return {ErrorCode::unreachable, "does not answer like a redis server without TLS (" + printable(why) + ")"};
}

void append_length(std::string& out, char kind, std::size_t length)
{
  std::array<char, 20> digits{};
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), length).ptr;
  out.push_back(kind);
  out.append(digits.data(), end).append("\r\n");
}

}  // namespace

// Formats a request without hiredis, because hiredis formats each length with sprintf(3), which took a tenth of the instructions
// of a start.
std::string encode(std::span<const std::string_view> argv)
{
  constexpr std::size_t room_for_length = 16;
  std::size_t size = room_for_length;
  for (const std::string_view word : argv) {
    size += word.size() + room_for_length;
  }
  std::string out;
  out.reserve(size);
  append_length(out, '*', argv.size());
  for (const std::string_view word : argv) {
    append_length(out, '$', word.size());
    out.append(word).append("\r\n");
  }
  return out;
}

struct Decoder::State {
  State() : reader(redisReaderCreateWithFunctions(&building))
  {
    if (reader == nullptr) {
      throw std::bad_alloc();
    }
    reader->privdata = &unfinished;
  }
  ~State() { redisReaderFree(reader); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  redisReader* reader;
  Unfinished unfinished;
};

Decoder::Decoder() : m_state(new State) {}

void Decoder::Free::operator()(State* state) const { delete state; }

void Decoder::feed(std::string_view bytes)
{
  m_state->unfinished.bytes += bytes.size();
  redisReaderFeed(m_state->reader, bytes.data(), bytes.size());  // next() reports an error
}

Result<std::optional<Reply>> Decoder::next()
{
  Unfinished& unfinished = m_state->unfinished;
  void* parsed = nullptr;
  const bool is_valid = redisReaderGetReply(m_state->reader, &parsed) == REDIS_OK;
  const std::unique_ptr<Reply> reply(static_cast<Reply*>(parsed));
  if (unfinished.refused == Unfinished::Refused::size || (!reply && unfinished.bytes > longest_reply)) {
    return Error{ErrorCode::unreachable, "answered with more than 16 MiB or 131072 values"};
  }
  if (!is_valid) {
    return not_resp(unfinished.refused == Unfinished::Refused::type ? "a type of RESP3" : m_state->reader->errstr);
  }
  if (!reply) {
    return std::optional<Reply>{};
  }
  unfinished = {};
  return std::optional(std::move(*reply));
}

}  // namespace rlock
