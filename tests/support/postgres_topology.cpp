// SPDX-License-Identifier: Apache-2.0
#include "support/postgres_topology.h"

#include "store/postgres/postgres_backend.h"
#include "store/record/record_codec.h"
#include "store/record/record_host.h"
#include "support/postgres_fixture.h"
#include "support/redis_fixture.h"
#include "support/skip.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fnmatch.h>

namespace rlock::test {
namespace {

Reply text_reply(std::string text)
{
  Reply reply;
  reply.kind = Reply::Kind::text;
  reply.text = std::move(text);
  return reply;
}

Reply number_reply(std::size_t number)
{
  Reply reply;
  reply.kind = Reply::Kind::integer;
  reply.integer = static_cast<std::int64_t>(number);
  return reply;
}

Reply list_reply(const std::vector<std::string>& texts)
{
  Reply reply;
  reply.kind = Reply::Kind::array;
  for (const std::string& text : texts) {
    reply.elements.push_back(text_reply(text));
  }
  return reply;
}

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

class PostgresTopology final : public Topology {
 public:
  PostgresTopology()
      : m_server({"fsync=off"}),
        m_host(postgres::open_backend({.url = m_server.url(), .password = {}, .creates_tables = true}, m_clock,
                                      std::make_unique<SystemRng>()),
               m_clock, std::make_unique<SystemRng>())
  {
    [[maybe_unused]] const auto made =
        m_host.find_logs("*", {.clock = m_clock, .timeout = std::chrono::seconds(10), .whole = limit()});
  }

  [[nodiscard]] std::string url() const override { return m_server.url(); }

  [[nodiscard]] std::optional<Result<Reply>> answer(const std::vector<std::string>& words) const override
  {
    const std::string& command = words.front();
    const std::lock_guard guard(m_mutex);
    if (command == "PING") {
      const auto there = on_record({"EXISTS", "k"});
      return there ? Result(text_reply("PONG")) : there;
    }
    if (command == "TIME") {
      const std::string micros = m_server.sql("select (extract(epoch from now()) * 1000000)::bigint");
      return list_reply(
          {std::to_string(std::stoll(micros) / 1'000'000), std::to_string(std::stoll(micros) % 1'000'000)});
    }
    if (command == "SCAN") {
      Reply page = list_reply({"0"});
      page.elements.push_back(list_reply(keys("*")));
      return page;
    }
    if (command == "DBSIZE") {
      return number_reply(keys("*").size());
    }
    if (command == "KEYS") {
      return list_reply(keys(words.at(1)));
    }
    if (command == "PUBSUB" && words.at(1) == "CHANNELS") {
      return list_reply(channels(words.size() > 2 ? words[2] : "*"));
    }
    if (command == "FLUSHALL") {
      (void)m_server.sql("delete from rlock_lock; delete from rlock_event");
      return text_reply("OK");
    }
    if (command == "CLIENT" && words.size() == 2 && words[1] == "KILL") {
      (void)m_server.sql(
          "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and "
          "backend_type = 'client backend'");
      return text_reply("OK");
    }
    if (std::ranges::find(key_commands, command) != key_commands.end()) {
      return on_record(words);
    }
    skip("on postgres, only a Redis server knows " + command);
  }

  void signal_store(int number) override
  {
    switch (number) {
      case SIGSTOP: m_server.stop(); break;
      case SIGCONT: m_server.resume(); break;
      default: m_server.kill(); break;
    }
  }
  void restart_store() override
  {
    if (m_server.is_there()) {
      m_server.kill();
    }
    m_server.start();
    m_host.drop_connection();
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
      return list_reply(*log.front());
    }
    return reply;
  }

  // The names of all keys of all locks.
  [[nodiscard]] std::vector<std::string> keys(const std::string& glob) const
  {
    std::vector<std::string> found;
    std::istringstream rows(
        m_server.sql("select encode(record, 'hex'), (extract(epoch from now()) * 1000)::bigint from rlock_lock"));
    for (std::string row; std::getline(rows, row);) {
      const auto bar = row.find('|');
      std::string bytes;
      for (std::size_t at = 0; at + 1 < bar; at += 2) {
        bytes += static_cast<char>(std::stoi(row.substr(at, 2), nullptr, 16));
      }
      const auto record = record::decode(bytes);
      REQUIRE(record);
      const std::int64_t now = std::stoll(row.substr(bar + 1));
      for (const auto& [key, entry] : record->keys) {
        if ((!entry.expires || *entry.expires >= now) && ::fnmatch(glob.c_str(), key.c_str(), 0) == 0) {
          found.push_back(key);
        }
      }
    }
    return found;
  }

  // The channels that somebody listens to.
  [[nodiscard]] std::vector<std::string> channels(const std::string& glob) const
  {
    std::vector<std::string> found;
    std::istringstream rows(
        m_server.sql("select distinct l.channel from rlock_listener l where exists (select from "
                     "pg_stat_get_activity(l.pid) a where a.backend_start = l.started)"));
    for (std::string channel; std::getline(rows, channel);) {
      if (::fnmatch(glob.c_str(), channel.c_str(), 0) == 0) {
        found.push_back(channel);
      }
    }
    return found;
  }

  mutable std::mutex m_mutex;
  BootClock m_clock;
  PostgresServer m_server;
  mutable record::RecordHost m_host;
};

}  // namespace

std::shared_ptr<Topology> postgres_topology(const RedisOptions& options)
{
  if (options.own_clock || !options.args.empty()) {
    skip("on postgres, a Redis server with settings of its own is not there");
  }
  return std::make_shared<PostgresTopology>();
}

}  // namespace rlock::test
