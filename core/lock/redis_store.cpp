// SPDX-License-Identifier: Apache-2.0
#include "lock/redis_store.h"

#include "base/text.h"
#include "lua/scripts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

namespace rlock {
namespace {

using Words = std::initializer_list<std::string_view>;

// Longer than any rlock goes on trying to release, so that a release sent twice finds its own note.
constexpr std::string_view release_note_ms = "600000";
// A fencing number that nobody used for 30 days is forgotten; the server's clock keeps the next one higher.
constexpr std::string_view fence_memory_ms = "2592000000";

std::string text_of(Millis duration) { return std::to_string(duration.count()); }

std::span<const std::string_view> span_of(Words words) { return {words.begin(), words.size()}; }

// A script's answer: a flat array whose first element is a word. Missing elements read as empty or 0.
class Answer {
 public:
  explicit Answer(const Reply& reply) : m_reply(reply) {}

  [[nodiscard]] bool is(std::string_view word) const { return text(0) == word; }
  [[nodiscard]] std::string text(std::size_t at) const { return at < size() ? part(at).text : ""; }
  [[nodiscard]] bool has(std::size_t at) const
  {
    return at < size() && part(at).kind == Reply::Kind::text;
  }
  [[nodiscard]] std::int64_t integer(std::size_t at) const { return at < size() ? part(at).integer : 0; }
  [[nodiscard]] std::uint64_t number(std::size_t at) const
  {
    const std::string digits = text(at);
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }
  // {owner, count, info}, from `at` on
  [[nodiscard]] Holder holder(std::size_t at) const
  {
    return Holder{.owner = Owner::of(text(at)),
                  .count = integer(at + 1),
                  .info = has(at + 2) ? decode_holder(text(at + 2)) : std::nullopt};
  }

 private:
  [[nodiscard]] std::size_t size() const { return m_reply.elements.size(); }
  [[nodiscard]] const Reply& part(std::size_t at) const { return m_reply.elements[at]; }
  const Reply& m_reply;
};

Error other_kind(const LockName& name, const Answer& answer)
{
  return Error{Fault::config, "the key " + printable(name.text()) + " holds a " +
                                  printable(answer.text(1)) +
                                  ", not a lock of this kind (use another --key)"};
}

Error not_understood(const Script& script)
{
  return Error{Fault::internal, "the answer of " + std::string(script.name) + " makes no sense"};
}

std::optional<Millis> ttl_of(std::int64_t pttl)
{
  return pttl < 0 ? std::nullopt : std::optional{Millis{pttl}};
}

// The request "owner\nby", if it means `owner`.
std::optional<ForceRequest> request_for(const Owner& owner, const std::string& request)
{
  const auto newline = request.find('\n');
  if (newline == std::string::npos || request.substr(0, newline) != owner.text()) {
    return std::nullopt;
  }
  return ForceRequest{request.substr(newline + 1)};
}

// {'lost', type, owner, info, request}
NotOurs not_ours(const Answer& answer, const Owner& owner)
{
  const std::string kind = answer.text(1);
  NotOurs lost{.what = {}, .forced = request_for(owner, answer.text(4))};
  if (kind == "none") {
    lost.what = "expired or deleted";
  } else if (kind == "hash") {
    const Holder holder{.owner = Owner::of(answer.text(2)),
                        .count = 1,
                        .info = answer.has(3) ? decode_holder(answer.text(3)) : std::nullopt};
    lost.what = "now held by " + describe(holder);
  } else {
    lost.what = "the key now holds a " + printable(kind);
  }
  return lost;
}

}  // namespace

Result<Attempt> RedisStore::acquire(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  const LockKeys keys(spec.name);
  const auto reply = run_script(*m_transport, scripts::exclusive_acquire,
                                span_of({keys.lock, keys.fence, keys.holder}),
                                span_of({owner.text(), owner.text(), text_of(spec.ttl),
                                         encode(spec.who), fence_memory_ms}),
                                limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("granted")) {
    return Attempt{Granted{.fence = answer.number(1), .count = answer.integer(2)}};
  }
  if (answer.is("busy")) {
    return Attempt{Busy{.ttl = ttl_of(answer.integer(1)), .holder = answer.holder(2)}};
  }
  return answer.is("other") ? other_kind(spec.name, answer)
                            : not_understood(scripts::exclusive_acquire);
}

Result<Renewal> RedisStore::renew(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  const LockKeys keys(spec.name);
  const auto reply =
      run_script(*m_transport, scripts::exclusive_renew, span_of({keys.lock, keys.holder, keys.force}),
                 span_of({owner.text(), text_of(spec.ttl)}), limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("kept")) {
    return Renewal{Kept{request_for(owner, answer.text(1))}};
  }
  if (answer.is("lost")) {
    return Renewal{not_ours(answer, owner)};
  }
  return not_understood(scripts::exclusive_renew);
}

Result<Release> RedisStore::release(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  const LockKeys keys(spec.name);
  const auto reply = run_script(
      *m_transport, scripts::exclusive_release,
      span_of({keys.lock, keys.holder, keys.force, keys.events, keys.fair_queue}),
      span_of({owner.text(), owner.text(), keys.channel, release_note_ms}), limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("released")) {
    return Release{Released{}};
  }
  if (answer.is("still_held")) {
    return Release{StillHeld{answer.integer(1)}};
  }
  if (answer.is("lost")) {
    return Release{not_ours(answer, owner)};
  }
  return not_understood(scripts::exclusive_release);
}

Result<LockState> RedisStore::inspect(const LockName& name, const Limit& limit)
{
  const LockKeys keys(name);
  const auto reply = run_script(*m_transport, scripts::exclusive_inspect,
                                span_of({keys.lock, keys.fence, keys.holder}), {}, limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("free")) {
    return LockState{.name = name, .ttl = Millis{0}, .fence = answer.number(1), .holders = {}};
  }
  if (answer.is("held")) {
    return LockState{.name = name,
                     .ttl = ttl_of(answer.integer(2)),
                     .fence = answer.number(1),
                     .holders = {answer.holder(3)}};
  }
  return answer.is("other") ? other_kind(name, answer) : not_understood(scripts::exclusive_inspect);
}

// A lock is a hash, and what looks like one is asked one by one: a name alone does not tell.
Result<std::vector<LockState>> RedisStore::list(std::string_view pattern, const Limit& limit)
{
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    const auto page = m_transport->call(
        "", span_of({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", "hash"}), limit);
    if (!page) {
      return page.error();
    }
    if (page->elements.size() != 2) {
      return Error{Fault::internal, "the answer to SCAN makes no sense"};
    }
    cursor = page->elements[0].text;
    for (const Reply& key : page->elements[1].elements) {
      keys.push_back(key.text);
    }
  } while (cursor != "0");

  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());  // SCAN may name a key twice
  std::vector<LockState> locks;
  for (const std::string& key : keys) {
    const auto name = LockName::parse(key);
    auto state = name ? inspect(*name, limit) : Result<LockState>(name.error());
    if (state && state->held()) {
      locks.push_back(*std::move(state));
    } else if (!state && state.error().fault != Fault::config && state.error().fault != Fault::usage) {
      return state.error();
    }
  }
  return locks;
}

Result<ForceAsk> RedisStore::ask(const LockName& name, const Owner& owner, std::string_view by,
                                 Millis grace, const Limit& limit)
{
  const LockKeys keys(name);
  const auto reply =
      run_script(*m_transport, scripts::exclusive_ask, span_of({keys.lock, keys.holder, keys.force}),
                 span_of({owner.text(), by, text_of(grace), keys.owner_channel + owner.text()}), limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("asked")) {
    return ForceAsk{ForceAsked{.holder = answer.holder(1), .listening = answer.integer(4)}};
  }
  if (answer.is("changed")) {
    return ForceAsk{ForceChanged{answer.holder(1)}};
  }
  if (answer.is("free")) {
    return ForceAsk{ForceFree{}};
  }
  return answer.is("other") ? other_kind(name, answer) : not_understood(scripts::exclusive_ask);
}

Result<ForceBreak> RedisStore::break_lock(const LockName& name, const Owner& owner, std::string_view by,
                                          const Limit& limit)
{
  const LockKeys keys(name);
  const auto reply =
      run_script(*m_transport, scripts::exclusive_break,
                 span_of({keys.lock, keys.holder, keys.force, keys.events, keys.fair_queue}),
                 span_of({owner.text(), by, release_note_ms, keys.owner_channel + owner.text(),
                          keys.channel}),
                 limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("broken")) {
    return ForceBreak{ForceBroken{answer.holder(1)}};
  }
  if (answer.is("changed")) {
    return ForceBreak{ForceChanged{answer.holder(1)}};
  }
  if (answer.is("free")) {
    return ForceBreak{ForceFree{}};
  }
  return answer.is("other") ? other_kind(name, answer) : not_understood(scripts::exclusive_break);
}

}  // namespace rlock
