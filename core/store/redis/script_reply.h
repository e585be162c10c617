// SPDX-License-Identifier: Apache-2.0
// What a script answered: a flat array whose first element is a word. Missing elements read as empty or 0.
#pragma once

#include "base/text.h"
#include "lock/requests.h"
#include "net/reply.h"
#include "server/script.h"
#include "store/redis/kinds.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// What a key holds, for a sentence: "a lock", "permits", "a zset".
inline std::string content_of_key(const std::string& word)
{
  const KindDescriptor* const kind = kind_in_key(word);
  return kind != nullptr ? std::string(kind->with_article) : "a " + word;
}

// What to do about a key that holds another kind than the caller asked for.
inline std::string advice_for_key(const std::string& word)
{
  const KindDescriptor* const kind = kind_in_key(word);
  return std::string(kind != nullptr ? kind->advice : "use another --key");
}

class Answer {
 public:
  explicit Answer(const Reply& reply) : m_reply(reply) {}

  [[nodiscard]] std::size_t size() const { return m_reply.elements.size(); }
  [[nodiscard]] bool is(std::string_view word) const { return text(0) == word; }
  [[nodiscard]] std::string text(std::size_t at) const { return at < size() ? part(at).text : ""; }
  [[nodiscard]] bool has(std::size_t at) const { return at < size() && part(at).kind == Reply::Kind::text; }
  [[nodiscard]] std::int64_t integer(std::size_t at) const { return at < size() ? part(at).integer : 0; }
  [[nodiscard]] std::uint64_t number(std::size_t at) const  // sent as text, for Lua's numbers are doubles
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
  // {owner, count, info}, from `at` on
  [[nodiscard]] Holder holder(std::size_t at) const
  {
    return {.owner = Owner::of(text(at)), .count = integer(at + 1), .info = info(at + 2)};
  }
  // What PTTL says; missing: no expiry
  [[nodiscard]] std::optional<Millis> ttl(std::size_t at) const
  {
    return integer(at) < 0 ? std::nullopt : std::optional{Millis{integer(at)}};
  }

  [[nodiscard]] const Reply& part(std::size_t at) const { return m_reply.elements[at]; }

  // What it means when it is none of the words that were expected.
  [[nodiscard]] Error unexpected(const Script& script, const LockName& name) const
  {
    if (is("other")) {
      return {ErrorCode::config, "the key " + printable(name.text()) + " holds " + printable(content_of_key(text(1))) +
                                     ", not a lock of this kind (" + advice_for_key(text(1)) + ")"};
    }
    if (is("differs")) {
      const std::string there = std::to_string(integer(1));
      if (there == "0") {
        return {ErrorCode::config, "the permits of " + printable(name.text()) +
                                       " are 0, because the record of their holders was " +
                                       "deleted (delete the key on the server)"};
      }
      return {ErrorCode::config, "the permits of " + printable(name.text()) + " are " + there + ", not " +
                                     std::to_string(integer(2)) + " (give --permits " + there +
                                     "; their number may change while none is held)"};
    }
    if (is("denied")) {
      return {
          ErrorCode::refused,
          "the server's ACL refuses " + printable(text(1)) + " on " + printable(text(2)) +
              " to this user (grant it, for without it the lock could not be released; rlock acl prints all rules)"};
    }
    return {ErrorCode::internal, "the answer of " + std::string(script.name) + " makes no sense"};
  }

 private:
  const Reply& m_reply;
};

}  // namespace rlock
