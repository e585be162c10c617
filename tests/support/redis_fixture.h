// SPDX-License-Identifier: Apache-2.0
// A real redis-server (or valkey-server; RLOCK_TEST_SERVER names another) of the test's own.
#pragma once

#include "base/clock.h"
#include "support/process.h"
#include "wire/reply.h"
#include "wire/url.h"

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

struct RedisOptions {
  std::vector<std::string> args;  // {"--maxmemory", "3mb"}: these win over the fixture's own
  bool tcp = false;               // listens on a free port of 127.0.0.1 besides its socket
  std::string password;           // of the default user; command() gives it
};

// Answers PING when the constructor is done. Nothing is persisted unless args say so; its files and
// its log are in a directory of its own. Where there is no server the test case is skipped.
class RedisServer {
 public:
  explicit RedisServer(RedisOptions options = {});

  [[nodiscard]] std::string url() const;      // unix:///tmp/…/redis.sock
  [[nodiscard]] std::string tcp_url() const;  // redis://127.0.0.1:PORT
  [[nodiscard]] std::filesystem::path socket_path() const { return m_dir / "redis.sock"; }
  [[nodiscard]] std::filesystem::path log_path() const { return m_dir / "redis.log"; }
  [[nodiscard]] std::uint16_t port() const { return m_port; }  // 0: no TCP
  [[nodiscard]] pid_t pid() const { return m_process->pid(); }

  void stop_signal() { m_process->signal(SIGSTOP); }  // accepts connections, answers nothing
  void cont() { m_process->signal(SIGCONT); }
  void kill_hard();  // SIGKILL; gone when this returns
  void restart();    // SIGTERM if it runs, then the same command again, same socket and port

  // On a connection of its own. A server that does not answer fails the test case; error replies
  // come back.
  Reply command(const std::vector<std::string>& words) const;

 private:
  void start();

  RedisOptions m_options;
  std::filesystem::path m_dir;
  std::uint16_t m_port = 0;
  std::optional<Process> m_process;
};

// These fail the test case, showing the reply, when it is of another kind.
std::int64_t as_int(const Reply& reply);
std::string as_text(const Reply& reply);
std::vector<std::string> as_texts(const Reply& reply);  // an array of texts
std::string show(const Reply& reply);

// How often it has been called, by clients and from scripts, since the server began.
std::int64_t calls(const RedisServer& server, const std::string& command);

// Ends the server at this socket, which a `local:` test has started through rlock, and waits until
// it is gone.
void shut_down(const std::filesystem::path& socket);

}  // namespace rlock::test
