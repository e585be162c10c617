// SPDX-License-Identifier: Apache-2.0
// One lock `k` on a server of its own, asked through its scripts alone.
#pragma once

#include "lock/kinds.h"
#include "lock/names.h"
#include "support/redis_fixture.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace rlock::test {

using Words = std::vector<std::string>;

class ScriptedLock {
 public:
  explicit ScriptedLock(Mode mode = Plain{}, RedisOptions options = {}) : server(std::move(options)), m_mode(mode) {}

  Reply eval(const Script& script, const std::string& owner, const Words& args) const
  {
    return eval_as(m_mode, script, owner, args);
  }
  Reply eval_as(const Mode& mode, const Script& script, const std::string& owner, const Words& args) const
  {
    const LockKeys keys(*LockName::parse("k"), mode);
    Words words{"EVAL",        script.source(), "11",          keys.lock,    keys.fence,    keys.holder,
                keys.force,    keys.events,     keys.queue,    keys.waiters, keys.reserved, keys.fair_queue,
                keys.second,   keys.done, owner,           keys.channel,  keys.owner_channel, wish_of(mode)};
    words.insert(words.end(), args.begin(), args.end());
    return server.command(words);
  }
  Reply acquire_as(const Mode& mode, const std::string& owner, const std::string& manner = "try", int ttl = 30'000,
                   const std::string& ticket = "0") const
  {
    return eval_as(mode, scripts_of(mode).acquire, owner,
                   {owner, std::to_string(ttl), "host=h\npid=1", manner, ticket, "0"});
  }
  Reply acquire(const std::string& owner, const std::string& hold, int ttl = 30'000,
                const std::string& manner = "try", const std::string& ticket = "0") const
  {
    return eval(scripts_of(m_mode).acquire, owner,
                {hold, std::to_string(ttl), "host=h\npid=1", manner, ticket, "0"});
  }
  Reply acquire(const std::string& owner) const { return acquire(owner, owner); }
  Reply renew(const std::string& owner, int ttl = 30'000) const
  {
    return eval(scripts_of(m_mode).renew, owner, {std::to_string(ttl)});
  }
  Reply release_as(const Mode& mode, const std::string& owner) const
  {
    return eval_as(mode, scripts_of(mode).release, owner, {owner, "0", "0", "0"});
  }
  Reply release(const std::string& owner, const std::string& hold, int keep = 0) const
  {
    return eval(scripts_of(m_mode).release, owner, {hold, "0", std::to_string(keep), "0"});
  }
  Reply release(const std::string& owner) const { return release(owner, owner); }
  Reply inspect() const { return eval(scripts_of(m_mode).inspect, "", {}); }
  std::int64_t pttl(const std::string& key) const { return as_int(server.command({"PTTL", key})); }
  std::int64_t count(const std::string& owner) const
  {
    const Reply held = server.command({"HGET", "k", owner});
    return held.kind == Reply::Kind::nil ? 0 : std::stoll(held.text);
  }

  RedisServer server;

 private:
  Mode m_mode;
};

inline std::string word(const Reply& reply)
{
  CAPTURE(show(reply));
  REQUIRE(reply.kind == Reply::Kind::array);
  return reply.elements.at(0).text;
}

}  // namespace rlock::test
