// SPDX-License-Identifier: Apache-2.0
// The reply of a script: a flat array whose first element is a word. A missing element reads as empty or 0.
#pragma once

#include "base/reply.h"
#include "lock/requests.h"
#include "store/script/script_host.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// What a key holds, as words of a sentence: "a lock", "permits", "a zset". `word`: the word of the scripts.
std::string content_of_key(const std::string& word);

// A time from a server, limited to about a century, so that sums of times do not overflow.
constexpr std::int64_t plausible_ms(std::int64_t ms)
{
  constexpr std::int64_t most = std::int64_t{1} << 42;
  return std::clamp(ms, -most, most);
}

// The latest plausible time of a server, in 2112: differences of later times could overflow.
inline constexpr ServerTime latest_time{std::int64_t{1} << 52};

class ScriptReply {
 public:
  explicit ScriptReply(const Reply& reply) : m_reply(reply) {}

  [[nodiscard]] std::size_t size() const { return m_reply.elements.size(); }
  [[nodiscard]] bool is(std::string_view word) const { return text(0) == word; }
  [[nodiscard]] std::string text(std::size_t at) const { return at < size() ? part(at).text : ""; }
  [[nodiscard]] bool has(std::size_t at) const { return at < size() && part(at).kind == Reply::Kind::text; }
  [[nodiscard]] std::int64_t integer(std::size_t at) const { return at < size() ? part(at).integer : 0; }
  [[nodiscard]] std::uint64_t number(std::size_t at) const  // sent as text, because Lua's numbers are doubles
  {
    const std::string digits = text(at);
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }
  [[nodiscard]] std::optional<HolderInfo> info(std::size_t at) const
  {
    return has(at) ? decode_holder(text(at)) : std::nullopt;
  }
  // The holder in the elements {owner, count, info} from `at` on.
  [[nodiscard]] Holder holder(std::size_t at) const
  {
    return {.owner = Owner::of(text(at)), .count = integer(at + 1), .info = info(at + 2)};
  }
  [[nodiscard]] Millis millis(std::size_t at) const { return Millis{plausible_ms(integer(at))}; }
  // A ttl as PTTL replies; nullopt: no expiry.
  [[nodiscard]] std::optional<Millis> ttl(std::size_t at) const
  {
    return integer(at) < 0 ? std::nullopt : std::optional{millis(at)};
  }

  [[nodiscard]] const Reply& part(std::size_t at) const { return m_reply.elements[at]; }

  // The error of a reply whose first word the caller does not know.
  [[nodiscard]] Error unexpected(const Script& script, const LockName& name) const;

 private:
  const Reply& m_reply;
};

}  // namespace rlock
