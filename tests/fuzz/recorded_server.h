// SPDX-License-Identifier: Apache-2.0
// A server whose replies are known before the requests, at a time that stands still.
#pragma once

#include "base/clock.h"
#include "redis/codec.h"
#include "redis/transport.h"

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace rlock::test {

class StandingClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return Instant{} + std::chrono::hours(1); }
  Wake sleep_until(Instant, const StopToken&) const override { return Wake::due; }
};
inline const StandingClock standing_clock;
inline const CallLimits limit{.deadline = Instant{} + std::chrono::hours(2), .stop = StopToken::never()};

class OnesRng final : public Rng {
 public:
  std::uint64_t next() override { return 1; }
};

// Answers each request with the next reply; every channel is refused.
class RecordedServer final : public Transport {
 public:
  explicit RecordedServer(std::vector<Reply> replies) : m_replies(std::move(replies)) {}
  Result<Reply> call(std::string_view, std::span<const std::string_view>, const CallLimits&) override
  {
    if (m_next == m_replies.size()) {
      return Error{ErrorCode::unreachable, "no answer"};
    }
    Reply& reply = m_replies[m_next++];
    if (reply.is_error() && !is_unknown_script(reply.text)) {
      return error_from_reply(reply.text, "redis://db1");
    }
    return reply;
  }
  Result<Reply> follow_up(std::string_view route, std::span<const std::string_view> argv,
                          const CallLimits& until) override
  {
    return call(route, argv, until);
  }
  Result<Subscription> subscribe(std::span<const std::string_view>, const CallLimits&) override
  {
    return Error{ErrorCode::unreachable, "no answer"};
  }
  void drop_connection() override {}

 private:
  std::vector<Reply> m_replies;
  std::size_t m_next = 0;
};

// The whole replies at the front of some bytes.
inline std::vector<Reply> replies_in(std::string_view bytes)
{
  Decoder decoder;
  decoder.feed(bytes);
  std::vector<Reply> replies;
  for (auto reply = decoder.next(); reply && *reply; reply = decoder.next()) {
    replies.push_back(**std::move(reply));
  }
  return replies;
}

}  // namespace rlock::test
