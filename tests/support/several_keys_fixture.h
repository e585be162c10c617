// SPDX-License-Identifier: Apache-2.0
// Jobs under several locks, and other clients of these locks.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/wait_until.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace rlock::test {

class SeveralKeysFixture {
 public:
  explicit SeveralKeysFixture(RedisOptions options = {}) : server(std::move(options)), dir(make_temp_dir("table")) {}

  Process run(Words options, const Words& job) const { return start_run(server.url(), std::move(options), job); }
  // Lets a foreign client hold the lock until release_as_foreign().
  void hold_as_foreign(const std::string& key) const
  {
    server.command({"HSET", key, "somebody:1", "1"});
    server.command({"PEXPIRE", key, "60000"});
  }
  void release_as_foreign(const std::string& key) const
  {
    server.command({"DEL", key});
    server.command({"PUBLISH", "redisson_lock__channel:{" + key + "}", "0"});
  }
  std::int64_t pttl(const std::string& key) const { return as_int(server.command({"PTTL", key})); }
  bool is_free(const std::string& key) const { return as_int(server.command({"EXISTS", key})) == 0; }
  void wait_for(const std::string& key) const
  {
    wait_until([&] { return !is_free(key); }, key + " is taken");
  }
  std::int64_t in_line(const std::string& key) const
  {
    return as_int(server.command({"ZCARD", "rlock:queue:{" + key + "}"}));
  }
  void wait_for_line(const std::string& key) const
  {
    skip_on_quorum("a quorum has no queue");
    wait_until([&] { return in_line(key) == 1; }, "one waits for " + key);
  }
  // Returns when the watchdogs of `count` locks listen.
  void wait_for_watchdogs(std::size_t count, const std::string& keys = "*") const
  {
    wait_until(
        [&] {
          return as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:owner:" + keys})).size() == count;
        },
        "they are watched");
  }
  std::string owner(const std::string& key) const { return as_texts(server.command({"HKEYS", key})).at(0); }
  std::string file(const std::string& name) const { return text_of(dir / name); }
  std::string path(const std::string& name) const { return (dir / name).string(); }

  RedisServer server;
  const std::filesystem::path dir;
};

}  // namespace rlock::test

#define KEYS_CASE(title) CASE_WITH(rlock::test::SeveralKeysFixture, fixture, title)
