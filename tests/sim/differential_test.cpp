// SPDX-License-Identifier: Apache-2.0
// The model of Redis and a real server get the same random calls of the scripts, and must give the same answers, send the
// same messages and end in the same state. Both have the same clock, which only the test moves.
#include "engine/lock_keys.h"
#include "engine/script_call.h"
#include "engine/script_interpreter.h"
#include "lua/scripts.h"
#include "redis/redis_store.h"
#include "redis/subscription.h"
#include "sim/real_redis.h"
#include "support/redis_fixture.h"
#include "support/seed.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>

namespace rlock::sim {
namespace {

using test::RedisServer;

constexpr int sequences = 40;
constexpr int calls_in_sequence = 60;

const std::array<std::string, 4> owners{
    "11111111-1111-4111-8111-111111111111:1", "22222222-2222-4222-8222-222222222222:2",
    "33333333-3333-4333-8333-333333333333:3", "44444444-4444-4444-8444-444444444444:4"};

class Twins {
 public:
  explicit Twins(std::uint64_t seed) : m_random(seed), m_lua(m_model)
  {
    // Redis 8 deletes in the background what a request may still read: a key in the last millisecond of its ttl.
    m_server.command({"DEBUG", "SET-ACTIVE-EXPIRE", "0"});
    m_model.on_publish = [this](const std::string& channel, const std::string& text) {
      if (!m_listening.contains(channel)) {
        return std::int64_t{0};
      }
      m_sent[channel].push_back(text);
      return std::int64_t{1};
    };
    m_model.count_subscribers = [this](const std::string& channel) { return m_listening.contains(channel) ? 1 : 0; };
  }

  void sequence()
  {
    both({"FLUSHALL"}, [this] {
      m_model.replace({});
      return Reply::status("OK");
    });
    m_main_kind = pick(static_cast<int>(modes.size()));
    subscribe_to_foreign_channel();
    for (m_step = 0; m_step < calls_in_sequence; ++m_step) {
      move_clock();
      one_call();
      if (m_step % 4 == 0) {
        compare_states();
      }
    }
    compare_states();
    compare_messages();
  }

 private:
  const std::vector<LockKind> modes{Plain{}, Reader{}, Writer{}, Permits{2}, StringLock{}};

  int pick(int count) { return static_cast<int>(m_random() % static_cast<std::uint64_t>(count)); }
  const std::string& owner() { return owners[static_cast<std::size_t>(pick(owners.size()))]; }

  // Mostly the same kind, so that much happens to one lock.
  LockKind any_kind()
  {
    return modes[static_cast<std::size_t>(pick(6) == 0 ? pick(static_cast<int>(modes.size())) : mixed())];
  }
  int mixed() { return m_main_kind == 1 || m_main_kind == 2 ? 1 + pick(2) : m_main_kind; }

  void move_clock()
  {
    constexpr std::array steps{0, 0, 1, 7, 249, 1000, 2000, 11'000};  // 1000, 2000: to the last ms of some ttl
    const Millis by{m_step == 0 && m_now_ms == 0 ? 1'700'000'000'000 : steps[static_cast<std::size_t>(pick(8))]};
    m_server.step_clock(by);
    m_now_ms += by.count();
    m_model.set_time(m_now_ms * 1000);
    m_server.command({"PING"});  // the server reads its clock
  }

  void one_call()
  {
    switch (pick(14)) {
      case 0: return toggle_subscription();
      case 1: return disturb();
      default: return script();
    }
  }

  void toggle_subscription()
  {
    const std::string channel = LockKeys(m_name).owner_channel + owner();
    m_listeners.erase(channel);
    if (m_listening.erase(channel) == 0) {
      listen(channel);
    } else {
      m_sent.erase(channel);
    }
    // The server must have seen the end of a connection before the next call.
    const auto subscribers = [&] {
      return test::as_int(m_server.command({"PUBSUB", "NUMSUB", channel}).elements.at(1));
    };
    test::wait_until([&] { return subscribers() == (m_listening.contains(channel) ? 1 : 0); }, "the server noticed");
  }

  void listen(const std::string& channel)
  {
    const std::array<std::string_view, 1> channels{channel};
    auto opened = Subscription::open(*parse_url(m_server.direct_url()), channels, m_clock, soon());
    REQUIRE(opened);
    m_listeners.emplace(channel, *std::move(opened));
    m_listening.insert(channel);
    m_sent.erase(channel);
  }

  void subscribe_to_foreign_channel()
  {
    m_listeners.clear();
    m_listening.clear();
    m_sent.clear();
    const LockKeys keys(m_name, modes[static_cast<std::size_t>(m_main_kind)]);
    if (!keys.channel.empty() && pick(2) == 0) {
      listen(keys.channel);
    }
    listen(keys.taken_channel);
  }

  // What another program may do to the keys of the lock.
  void disturb()
  {
    const LockKeys keys(m_name, any_kind());
    const std::array<std::string, 8> all{keys.lock,    keys.fence,  keys.holder, keys.queue,
                                         keys.waiters, keys.events, keys.second, keys.force};
    const std::string& key = all[static_cast<std::size_t>(pick(8))];
    switch (pick(4)) {
      case 0: return command({"SET", key, "7", "PX", "5000"});
      case 1: return command({"HSET", keys.lock, owner(), "1"});
      default: return command({"DEL", key});
    }
  }

  void script()
  {
    const LockKind kind = any_kind();
    const KindScripts& scripts = scripts_of(kind);
    const std::string who = owner();
    const std::string hold = pick(3) == 0 ? who + "/nested" : who;
    const std::string ttl = std::to_string(std::array{30'000, 10'000, 1000}[static_cast<std::size_t>(pick(3))]);
    switch (pick(9)) {
      case 0:
      case 1:
      case 2: {
        const std::string ticket = pick(4) == 0 ? std::to_string(m_now_ms * 1000 - 5'000'000) : "0";
        const std::string how = std::array{"try", "wait", "wait", "again"}[static_cast<std::size_t>(pick(4))];
        return run(scripts.acquire, kind, who,
                   {how == "again" ? hold : who, ttl, "host=h\npid=1\nlease=" + ttl + "\nauto=1", how, ticket,
                    pick(5) == 0 ? "4000" : "0"});
      }
      case 3: return run(scripts.renew, kind, who, {pick(4) == 0 ? "0" : ttl, pick(2) == 0 ? "" : hold, ""});
      case 4: return run(scripts.renew, kind, who, {ttl, "", "stopping"});
      case 5:
      case 6:
        return run(scripts.release, kind, who,
                   {hold, pick(4) == 0 ? "-1" : std::to_string(pick(2)), pick(4) == 0 ? "3000" : "0",
                    pick(6) == 0 ? "5000" : "0"});
      case 7: {
        const std::string step = std::array{"ask", "look", "revoke", "take"}[static_cast<std::size_t>(pick(4))];
        return run(scripts.force, kind, who, {"eve@h", step, "1000"});
      }
      default:
        return pick(3) == 0 ? run(scripts.raise, kind, who, {std::to_string(m_now_ms * 1000 + 99)})
                            : run(scripts.inspect, kind, who, {});
    }
  }

  void run(const Script& script, const LockKind& kind, const std::string& who, const Words& args)
  {
    const LockKeys keys(m_name, kind);
    const Words names{keys.lock,    keys.fence,    keys.holder, keys.force,  keys.events, keys.queue,
                      keys.waiters, keys.reserved, keys.fair,   keys.second, keys.done};
    Words words{who, keys.channel, keys.owner_channel, requested_mode(kind), ""};
    words.insert(words.end(), args.begin(), args.end());
    Words whole{"EVAL", script.source(), std::to_string(names.size())};
    whole.insert(whole.end(), names.begin(), names.end());
    whole.insert(whole.end(), words.begin(), words.end());
    m_last = std::string(script.name) + " " + test::show(Reply::list(words));
    both(whole, [&] { return m_lua.run(script.source(), names, words); });
  }

  void command(const Words& words)
  {
    m_last = test::show(Reply::list(words));
    both(words, [&] { return m_model.command(words); });
  }

  template <typename Ask>
  void both(const Words& words, Ask&& ask_model)
  {
    const Reply real = comparable(m_server.command(words));
    const Reply modelled = comparable(ask_model());
    CAPTURE(m_last);
    CAPTURE(m_step);
    REQUIRE_MESSAGE(real == modelled, "Redis answered ", test::show(real), " and the model ", test::show(modelled));
    ++m_compared;
  }

  void compare_states()
  {
    KeySpace real;
    real.replace(keys_of(m_server));
    CAPTURE(m_last);
    CAPTURE(m_step);
    REQUIRE(dump(real) == dump(m_model));
  }

  void compare_messages()
  {
    for (auto& listener : m_listeners) {
      const auto& channel = listener.first;
      m_server.command({"PUBLISH", channel, "end of test"});
      Words heard;
      for (std::string text; text != "end of test";) {
        const auto message = listener.second.next(soon());
        REQUIRE(message);
        REQUIRE(message->has_value());
        text = (*message)->text;
        heard.push_back(text);
      }
      heard.pop_back();
      CAPTURE(channel);
      REQUIRE(heard == m_sent[channel]);
    }
  }

  [[nodiscard]] CallLimits soon() const
  {
    return {.deadline = m_clock.now() + std::chrono::seconds(5), .stop = StopToken::never()};
  }

 public:
  int m_compared = 0;

 private:
  std::mt19937_64 m_random;
  const RedisServer m_server{
      {.args = {"--enable-debug-command", "yes"}, .alone = true, .own_clock = true, .clock_stands = true}};
  const LockName m_name = *LockName::parse("k");
  BootClock m_clock;
  KeySpace m_model;
  record::ScriptInterpreter m_lua;
  std::int64_t m_now_ms = 0;
  int m_main_kind = 0;
  int m_step = 0;
  std::string m_last;
  std::map<std::string, Subscription> m_listeners;  // by channel
  std::set<std::string> m_listening;
  std::map<std::string, Words> m_sent;  // what the model sent since the subscription
};

}  // namespace

TEST_CASE("sim: the model of Redis gives the answers, the messages and the state of a real server")
{
  Twins twins(test::seed());
  for (int i = 0; i < sequences; ++i) {
    CAPTURE(i);
    twins.sequence();
  }
  CHECK(twins.m_compared > sequences * calls_in_sequence / 2);
}

}  // namespace rlock::sim
