// SPDX-License-Identifier: Apache-2.0
// One lock on a server, used through its scripts alone: `k`, unless another name is set.
#pragma once

#include "engine/lock_keys.h"
#include "engine/script_call.h"
#include "redis/redis_store.h"
#include "redis/subscription.h"
#include "support/integration.h"

namespace rlock::test {

using HashFields = std::map<std::string, std::string>;

// What inspect returns of one holder.
struct HolderRow {
  std::string owner;
  std::int64_t count = 0;
  std::string mode;
  std::string info;
  bool is_revoked = false;
};

class ScriptedLock {
 public:
  explicit ScriptedLock(LockKind kind = Plain{}, RedisOptions options = {}) : server(std::move(options)), m_mode(kind)
  {
  }

  Reply eval(const Script& script, const std::string& owner, const Words& args) const
  {
    return eval_as(m_mode, script, owner, args);
  }
  Reply eval_as(const LockKind& kind, const Script& script, const std::string& owner, const Words& args) const
  {
    const LockKeys keys(*LockName::parse(name), kind);
    Words words{"EVAL",      script.source(), "11",       keys.lock,    keys.fence,         keys.holder,
                keys.force,  keys.events,     keys.queue, keys.waiters, keys.reserved,      keys.fair,
                keys.second, keys.done,       owner,      keys.channel, keys.owner_channel, requested_mode(kind),
                ""};
    words.insert(words.end(), args.begin(), args.end());
    return server.command(words);
  }
  Reply acquire_as(const LockKind& kind, const std::string& owner, const std::string& options = "try", int ttl = 30'000,
                   const std::string& ticket = "0") const
  {
    return eval_as(kind, scripts_of(kind).acquire, owner,
                   {owner, std::to_string(ttl), "host=h\npid=1", options, ticket, "0"});
  }
  Reply acquire(const std::string& owner, const std::string& hold, int ttl = 30'000, const std::string& options = "try",
                const std::string& ticket = "0") const
  {
    return eval(scripts_of(m_mode).acquire, owner, {hold, std::to_string(ttl), "host=h\npid=1", options, ticket, "0"});
  }
  Reply acquire(const std::string& owner) const { return acquire(owner, owner); }
  Reply renew(const std::string& owner, int ttl = 30'000) const
  {
    return eval(scripts_of(m_mode).renew, owner, {std::to_string(ttl)});
  }
  Reply renew_hold(const std::string& owner, const std::string& hold) const
  {
    return eval(scripts_of(m_mode).renew, owner, {"30000", hold});
  }
  Reply release_as(const LockKind& kind, const std::string& owner) const
  {
    return eval_as(kind, scripts_of(kind).release, owner, {owner, "0", "0", "0"});
  }
  Reply release(const std::string& owner, const std::string& hold, int keep = 0) const
  {
    return eval(scripts_of(m_mode).release, owner, {hold, "0", std::to_string(keep), "0"});
  }
  Reply release(const std::string& owner) const { return release(owner, owner); }
  Reply inspect() const { return eval(scripts_of(m_mode).inspect, "", {}); }
  std::vector<HolderRow> holders() const
  {
    const Reply seen = inspect();
    const std::vector<Reply>& parts = seen.elements.at(5).elements;
    constexpr std::size_t parts_of_holder = 6;
    REQUIRE(parts.size() % parts_of_holder == 0);
    std::vector<HolderRow> rows;
    for (std::size_t i = 0; i < parts.size(); i += parts_of_holder) {
      rows.push_back({.owner = parts[i].text,
                      .count = parts[i + 1].integer,
                      .mode = parts[i + 2].text,
                      .info = parts[i + 3].text,
                      .is_revoked = parts[i + 5].integer == 1});
    }
    return rows;
  }
  // A step of force-unlock: ask, look, revoke, take.
  Reply force(const std::string& step, const std::string& owner) const
  {
    return eval(scripts_of(m_mode).force, owner, {"eve@h", step, "1000"});
  }
  Reply ask(const std::string& owner) const { return force("ask", owner); }
  Reply take_away(const std::string& owner) const { return force("take", owner); }
  // Joins the queue. The waiter counts as alive while its channel has a subscriber (ChannelListener).
  Reply wait(const std::string& owner, const std::string& ticket = "0") const
  {
    return acquire(owner, owner, 30'000, "wait", ticket);
  }
  std::int64_t exists(const std::string& key) const { return as_int(server.command({"EXISTS", key})); }
  HashFields hash(const std::string& key) const
  {
    const auto words = as_texts(server.command({"HGETALL", key}));
    HashFields fields;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      fields[words[i]] = words[i + 1];
    }
    return fields;
  }
  // All keys without a ttl.
  Words lasting() const
  {
    Words keys;
    for (const std::string& key : as_texts(server.command({"KEYS", "*"}))) {
      if (pttl(key) == -1) {
        keys.push_back(key);
      }
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  std::int64_t pttl(const std::string& key) const { return as_int(server.command({"PTTL", key})); }
  std::int64_t count(const std::string& owner) const
  {
    const Reply held = server.command({"HGET", "k", owner});
    return held.kind == Reply::Kind::nil ? 0 : std::stoll(held.text);
  }

  RedisServer server;
  std::string name = "k";

 private:
  LockKind m_mode;
};

// A subscriber to some channels.
class ChannelListener {
 public:
  ChannelListener(const RedisServer& server, const Words& channels) : m_server(server), m_end(channels.front())
  {
    const std::vector<std::string_view> views(channels.begin(), channels.end());
    auto opened = Subscription::open(*parse_url(server.direct_url()), views, m_clock, soon());
    REQUIRE(opened);
    m_subscription.emplace(*std::move(opened));
  }
  ChannelListener(const RedisServer& server, const std::string& channel) : ChannelListener(server, Words{channel}) {}

  // All messages since the last call; of a hand-over only the word, and of a claim not that holds are short.
  Words received()
  {
    Words words = messages();
    for (std::string& text : words) {
      text = text.starts_with("yours ") ? "yours" : text.substr(0, text.rfind(" quick"));
    }
    return words;
  }
  Words messages()
  {
    m_server.command({"PUBLISH", m_end, "end of test"});
    Words words;
    for (;;) {
      const auto message = m_subscription->next(soon());
      REQUIRE(message);
      REQUIRE(message->has_value());
      if ((*message)->text == "end of test") {
        return words;
      }
      words.push_back((*message)->text);
    }
  }

 private:
  [[nodiscard]] CallLimits soon() const
  {
    return {.deadline = m_clock.now() + std::chrono::seconds(5), .stop = StopToken::never()};
  }
  const RedisServer& m_server;
  std::string m_end;
  BootClock m_clock;
  std::optional<Subscription> m_subscription;
};

// Makes a waiter count as alive.
inline ChannelListener subscribe_as(const ScriptedLock& lock, const std::string& waiter)
{
  return ChannelListener(lock.server, "rlock:owner:{k}:" + waiter);
}

inline std::string word(const Reply& reply)
{
  CAPTURE(show(reply));
  REQUIRE(reply.kind == Reply::Kind::array);
  return reply.elements.at(0).text;
}

inline std::string shown(const LockKind& kind)
{
  return std::string(kind_of(kind).with_article) + " " + requested_mode(kind);
}

}  // namespace rlock::test

#define SCRIPT_CASE(title) CASE_WITH(rlock::test::ScriptedLock, lock, title)
// For each of the kinds that the file lists as `modes`.
#define EACH_MODE_CASE(title) CASE_FOR_EACH(rlock::LockKind, kind, modes, title)
