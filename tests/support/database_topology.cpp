// SPDX-License-Identifier: Apache-2.0
#include "support/database_topology.h"

#include "engine/record_codec.h"
#include "engine/record_host.h"
#include "support/redis_fixture.h"
#include "support/skip.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <mutex>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fnmatch.h>

namespace rlock::test {
namespace {

// The lock whose record has the key: "k" has "rlock:queue-rw:{k}", "rlock:holder:tagged:a{b}", "{k}:timeout".
std::string lock_of(std::string_view key)
{
  constexpr std::string_view tagged = ":tagged:";
  if (const auto at = key.find(tagged); key.starts_with("rlock:") && at != std::string_view::npos) {
    return std::string(key.substr(at + tagged.size()));
  }
  const bool is_beside = key.starts_with("rlock:") || key.starts_with("redisson_") || key.starts_with("{");
  const auto open = key.find('{');
  const auto close = key.find('}');
  return std::string(
      is_beside && open < close && close != std::string_view::npos ? key.substr(open + 1, close - open - 1) : key);
}

constexpr std::array key_commands{"EXISTS", "DEL",     "TYPE",   "PEXPIRE", "PTTL",    "GET",   "SET",
                                  "RPUSH",  "LRANGE",  "LTRIM",  "LINDEX",  "HGET",    "HMGET", "HSET",
                                  "HDEL",   "HEXISTS", "HLEN",   "HINCRBY", "HGETALL", "HKEYS", "HVALS",
                                  "ZADD",   "ZCARD",   "ZCOUNT", "ZRANGE",  "ZRANK",   "ZREM",  "ZSCORE"};

class DatabaseTopology final : public Topology {
 public:
  DatabaseTopology(std::string_view name, std::shared_ptr<DatabaseServer> server)
      : m_name(name),
        m_server(std::move(server)),
        m_backend(m_server->open_backend(m_clock)),
        m_host(m_server->open_backend(m_clock), m_clock, std::make_unique<SystemRng>())
  {
    [[maybe_unused]] const auto made =
        m_host.find_logs("*", {.clock = m_clock, .timeout = std::chrono::seconds(10), .whole = limit()});
  }

  [[nodiscard]] std::string url() const override { return m_server->url(); }

  [[nodiscard]] std::optional<Result<Reply>> answer(const std::vector<std::string>& words) const override
  {
    const std::string& command = words.front();
    const std::lock_guard guard(m_mutex);
    if (command == "PING") {
      const auto there = on_record({"EXISTS", "k"});
      return there ? Result(Reply::of("PONG")) : there;
    }
    if (command == "TIME") {
      const std::int64_t micros = read("k").time_us;
      return Reply::list({std::to_string(micros / 1'000'000), std::to_string(micros % 1'000'000)});
    }
    if (command == "SCAN") {
      Reply page = Reply::list({"0"});
      page.elements.push_back(Reply::list(keys("*")));
      return page;
    }
    if (command == "DBSIZE") {
      return Reply::of(static_cast<std::int64_t>(keys("*").size()));
    }
    if (command == "KEYS") {
      return Reply::list(keys(words.at(1)));
    }
    if (command == "PUBSUB" && words.at(1) == "CHANNELS") {
      return Reply::list(channels(words.size() > 2 ? words[2] : "*"));
    }
    if (command == "FLUSHALL") {
      m_server->delete_locks();
      return Reply::of("OK");
    }
    if (command == "CLIENT" && words.size() == 2 && words[1] == "KILL") {
      m_server->end_connections();
      return Reply::of("OK");
    }
    if (std::ranges::find(key_commands, command) != key_commands.end()) {
      return on_record(words);
    }
    skip("on " + m_name + ", only a Redis server knows " + command);
  }

  void signal_store(int number) override
  {
    switch (number) {
      case SIGSTOP: m_server->stop(); break;
      case SIGCONT: m_server->resume(); break;
      default: m_server->kill(); break;
    }
  }
  void restart_store() override
  {
    if (m_server->is_there()) {
      m_server->kill();
    }
    m_server->start();
    const std::lock_guard guard(m_mutex);
    m_host.drop_connection();
    m_backend->drop_connection();
  }

 private:
  [[nodiscard]] CallLimits limit() const
  {
    return {.deadline = m_clock.now() + std::chrono::seconds(10), .stop = StopToken::never()};
  }

  [[nodiscard]] Result<Reply> on_record(const std::vector<std::string>& words) const
  {
    const auto name = LockName::parse(lock_of(words.at(1)));
    REQUIRE_MESSAGE(name, words[1]);
    const std::vector<std::string_view> argv(words.begin(), words.end());
    auto reply = m_host.command(*name, argv, limit());
    if (!reply) {
      m_host.drop_connection();
      return reply.error();
    }
    if (words.front() == "LRANGE" && words[1].starts_with("rlock:events:")) {
      const auto log = m_host.logs(std::array{*name}, limit());
      REQUIRE(log.front());
      return Reply::list(*log.front());
    }
    return reply;
  }

  [[nodiscard]] record::Snapshot read(const std::string& name) const
  {
    auto state = m_backend->read(name, limit());
    if (!state) {  // the connection was ended
      state = m_backend->read(name, limit());
    }
    REQUIRE_MESSAGE(state, state.error().text);
    return *std::move(state);
  }

  // The names of all keys of all locks.
  [[nodiscard]] std::vector<std::string> keys(const std::string& glob) const
  {
    std::vector<std::string> found;
    for (const std::string& name : m_server->lock_names()) {
      const record::Snapshot state = read(name);
      const auto record = record::decode(state.bytes);
      REQUIRE(record);
      for (const auto& [key, entry] : record->keys) {
        if ((!entry.expires || *entry.expires >= state.time_us / 1000) &&
            ::fnmatch(glob.c_str(), key.c_str(), 0) == 0) {
          found.push_back(key);
        }
      }
    }
    return found;
  }

  // The channels to which a client listens.
  [[nodiscard]] std::vector<std::string> channels(const std::string& glob) const
  {
    std::vector<std::string> found;
    for (const std::string& name : m_server->lock_names()) {
      for (std::string& channel : read(name).listeners) {
        if (::fnmatch(glob.c_str(), channel.c_str(), 0) == 0) {
          found.push_back(std::move(channel));
        }
      }
    }
    return found;
  }

  mutable std::mutex m_mutex;
  BootClock m_clock;
  std::string m_name;
  std::shared_ptr<DatabaseServer> m_server;
  std::unique_ptr<record::Backend> m_backend;
  mutable record::RecordHost m_host;
};

}  // namespace

std::shared_ptr<Topology> database_topology(const DatabaseRow& database, const RedisOptions& options)
{
  skip_if(options.own_clock || !options.args.empty(),
          "on " + std::string(database.name) + ", a Redis server with settings of its own is not there");
  return database_topology(database.name, database.start());
}

std::shared_ptr<Topology> database_topology(std::string_view name, std::shared_ptr<DatabaseServer> server)
{
  return std::make_shared<DatabaseTopology>(name, std::move(server));
}

}  // namespace rlock::test
