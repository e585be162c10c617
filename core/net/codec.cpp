// SPDX-License-Identifier: Apache-2.0
#include "net/codec.h"

#include "base/text.h"

#if __has_include(<hiredis/hiredis.h>)
#include <hiredis/hiredis.h>
#else
#include <hiredis.h>
#endif

#include <new>
#include <utility>
#include <vector>

namespace rlock {
namespace {

// A limit, because the reader of hiredis buffers without one. Answers to a lock client are far smaller.
constexpr std::size_t max_unfinished = std::size_t{64} << 20;

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

// nullopt for the types of RESP3, which newer versions of hiredis return and Reply does not have.
std::optional<Reply> to_reply(const redisReply& from)
{
  Reply reply;
  switch (from.type) {
    case REDIS_REPLY_NIL: return reply;
    case REDIS_REPLY_INTEGER:
      reply.kind = Reply::Kind::integer;
      reply.integer = from.integer;
      return reply;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
      reply.kind = from.type == REDIS_REPLY_ERROR ? Reply::Kind::error : Reply::Kind::text;
      reply.text.assign(from.str, static_cast<std::size_t>(from.len));
      return reply;
    case REDIS_REPLY_ARRAY: break;
    default: return std::nullopt;
  }
  reply.kind = Reply::Kind::array;
  for (std::size_t i = 0; i < static_cast<std::size_t>(from.elements); ++i) {
    auto element = to_reply(*from.element[i]);
    if (!element) {
      return std::nullopt;
    }
    reply.elements.push_back(std::move(*element));
  }
  return reply;
}

Error not_resp(std::string_view why)
{
  return {ErrorCode::unreachable, "does not answer like a redis server without TLS (" + printable(why) + ")"};
}

}  // namespace

std::string encode(std::span<const std::string_view> argv)
{
  std::vector<const char*> words;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : argv) {
    words.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  // int before hiredis 1.1, long long since
  const auto length = redisFormatCommandArgv(&bytes, static_cast<int>(argv.size()), words.data(), lengths.data());
  if (length < 0) {
    throw std::bad_alloc();
  }
  std::string out(bytes, static_cast<std::size_t>(length));
  redisFreeCommand(bytes);
  return out;
}

Decoder::Decoder() : m_reader(redisReaderCreate())
{
  if (!m_reader) {
    throw std::bad_alloc();
  }
}

void Decoder::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

void Decoder::feed(std::string_view bytes)
{
  m_unfinished += bytes.size();
  redisReaderFeed(m_reader.get(), bytes.data(),
                  bytes.size());  // next() reports an error
}

Result<std::optional<Reply>> Decoder::next()
{
  void* parsed = nullptr;
  if (redisReaderGetReply(m_reader.get(), &parsed) != REDIS_OK) {
    return not_resp(m_reader->errstr);
  }
  if (parsed == nullptr) {
    if (m_unfinished > max_unfinished) {
      return Error{ErrorCode::unreachable, "answered with more than 64 MiB"};
    }
    return std::optional<Reply>{};
  }
  m_unfinished = 0;
  const std::unique_ptr<redisReply, FreeReply> owned(static_cast<redisReply*>(parsed));
  auto reply = to_reply(*owned);
  if (!reply) {
    return not_resp("a type of RESP3");
  }
  return reply;
}

}  // namespace rlock
