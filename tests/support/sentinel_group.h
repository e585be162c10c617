// SPDX-License-Identifier: Apache-2.0
// A master, its replicas, and sentinels that watch over them as "mymaster", all on free ports of 127.0.0.1.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/sockets.h"

#include <csignal>
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
    std::string password;                 // the password of the sentinel's default user
    std::vector<std::string> lines = {};  // further lines of its configuration
    std::uint16_t port = free_port();
  };
  explicit SentinelProcess(const Options& options);

  [[nodiscard]] std::uint16_t port() const { return m_port; }
  [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(m_port); }
  Reply command(const std::vector<std::string>& words) const;
  // The port of the master that the sentinel names; 0: no answer.
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
  Millis down_after{1500};  // with a much shorter time, a busy machine causes fail-overs
  bool let_old_masters_be =
      false;  // true: an old master stays a master for some seconds, as by default; false: it becomes a replica at once
  std::string sentinel_password = {};
  RedisOptions servers = {};  // the options of each server; `tcp` is implied
};

// When the constructor is done, the sentinels know each other and the replicas.
class SentinelGroup {
 public:
  explicit SentinelGroup(SentinelOptions options = {});

  [[nodiscard]] std::string url() const;  // redis+sentinel://…/mymaster, without passwords
  RedisServer& master();                  // the master that most sentinels name
  RedisServer& at(std::uint16_t port);
  void await_master_other_than(
      std::uint16_t port);                 // returns when most sentinels name another master, which says that it is one
  void await_replicas(std::size_t count);  // returns when the master has this many

  std::deque<RedisServer> servers;  // the first is the master in the beginning
  std::deque<SentinelProcess> sentinels;

 private:
  void start_sentinels(const SentinelProcess::Options& options, unsigned count);
  [[nodiscard]] std::uint16_t master_port() const;
};

}  // namespace rlock::test
