// SPDX-License-Identifier: Apache-2.0
// A master, its replicas, and sentinels that watch over them as "mymaster", all on free ports of 127.0.0.1.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

namespace rlock::test {

// One redis-server --sentinel. After a stop it starts again with the configuration that it wrote.
class SentinelProcess {
 public:
  struct Options {
    std::uint16_t master_port;
    unsigned quorum;
    Millis down_after;
    std::string password;                 // of its own default user
    std::vector<std::string> lines = {};  // further ones of its configuration
    std::uint16_t port = free_port();
  };
  explicit SentinelProcess(const Options& options);

  [[nodiscard]] std::uint16_t port() const { return m_port; }
  [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(m_port); }
  Reply command(const std::vector<std::string>& words) const;
  // The port of the master that it names; 0: it does not answer.
  [[nodiscard]] std::uint16_t master_port() const;
  void stop_signal() { m_process->signal(SIGSTOP); }
  void cont() { m_process->signal(SIGCONT); }
  void kill_hard();
  void start();

 private:
  [[nodiscard]] Endpoint endpoint() const;

  const std::filesystem::path m_dir;
  const std::uint16_t m_port;
  std::string m_password;
  std::optional<Process> m_process;
};

struct SentinelOptions {
  unsigned replicas = 2;
  unsigned sentinels = 3;
  Millis down_after{1500};          // if it is much shorter, a busy machine causes fail-overs of its own
  bool let_old_masters_be = false;  // for some seconds, as sentinels do by default; else they become replicas at once
  std::string sentinel_password = {};
  RedisOptions servers = {};  // each of them; `tcp` is implied
};

// The sentinels know each other and the replicas when the constructor is done.
class SentinelGroup {
 public:
  explicit SentinelGroup(SentinelOptions options = {});

  [[nodiscard]] std::string url() const;  // redis+sentinel://…/mymaster, without passwords
  RedisServer& master();                  // according to most of the sentinels
  RedisServer& at(std::uint16_t port);
  void await_master_other_than(std::uint16_t port);  // returns when most sentinels name it, and it is a master
  void await_replicas(std::size_t count);            // returns when the master has this many

  std::deque<RedisServer> servers;  // the first is the master in the beginning
  std::deque<SentinelProcess> sentinels;

 private:
  void start_sentinels(const SentinelProcess::Options& options, unsigned count);
  [[nodiscard]] std::uint16_t master_port() const;
};

}  // namespace rlock::test
