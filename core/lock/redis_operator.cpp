// SPDX-License-Identifier: Apache-2.0
// The operator's half of RedisStore: looking, and taking away.
#include "lock/answer.h"
#include "lock/redis_store.h"
#include "lua/scripts.h"

#include <algorithm>
#include <array>

namespace rlock {
namespace {

LockState state_of(const LockName& name, const Answer& answer)
{
  LockState state{
      .name = name, .ttl = answer.ttl(2), .fence = answer.number(1), .holders = {}, .waiting = {}};
  if (!answer.text(3).empty()) {
    state.holders.push_back(answer.holder(3));
  }
  for (std::size_t at = 6; at + 1 < answer.size(); at += 2) {
    state.waiting.push_back({.owner = Owner::of(answer.text(at)), .info = answer.info(at + 1)});
  }
  return state;
}

}  // namespace

Result<LockState> RedisStore::inspect(const LockName& name, const Limit& limit)
{
  const auto reply = call(scripts::exclusive_inspect, name, Owner::of(""), {}, limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  return answer.is("known") ? Result(state_of(name, answer))
                            : answer.unexpected(scripts::exclusive_inspect, name);
}

// A lock is a hash, and what looks like one is asked one by one: a name alone does not tell.
Result<std::vector<LockState>> RedisStore::list(std::string_view pattern, const Limit& limit)
{
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    const std::array<std::string_view, 8> argv{"SCAN",  cursor, "MATCH", pattern,
                                               "COUNT", "1000", "TYPE",  "hash"};
    const auto page = m_transport->call("", argv, limit);
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
  const auto reply =
      call(scripts::exclusive_ask, name, owner, {by, std::to_string(grace.count())}, limit);
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
  return answer.unexpected(scripts::exclusive_ask, name);
}

Result<ForceBreak> RedisStore::break_lock(const LockName& name, const Owner& owner, std::string_view by,
                                          const Limit& limit)
{
  const auto reply = call(scripts::exclusive_break, name, owner, {by}, limit);
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
  return answer.unexpected(scripts::exclusive_break, name);
}

}  // namespace rlock
