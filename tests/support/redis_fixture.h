// SPDX-License-Identifier: Apache-2.0
// A real redis-server, or valkey-server; RLOCK_TEST_SERVER names another program.
#pragma once

#include "base/clock.h"
#include "net/reply.h"
#include "server/url.h"
#include "support/certificates.h"
#include "support/process.h"
#include "support/topology.h"

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

struct RedisOptions {
  std::vector<std::string> args;                  // {"--maxmemory", "3mb"}: these win over the fixture's own
  bool tcp = false;                               // listens on a free port of 127.0.0.1 besides its socket
  std::string password;                           // of the default user; command() gives it
  std::optional<Certificate> tls = std::nullopt;  // of the server: with `tcp`, that port speaks TLS
  bool alone = false;                             // a plain server on every topology (topology.h)
  bool own_clock = false;                         // step_clock works
  bool clock_stands = false;                      // with own_clock: its clock is at 1970, and only step_clock moves it
  std::string client_ca = {};  // the authority that must have signed a client's certificate; empty: clients need none
  bool cluster = false;        // a cluster of one node, with a bus port
};

// Answers PING when the constructor is done. Nothing is persisted unless args say so; its files and
// its log are in a directory of its own. Where there is no server the test case is skipped.
class RedisServer {
 public:
  using Options = RedisOptions;
  explicit RedisServer(RedisOptions options = {});

  // The URL for rlock: unix:///tmp/…/redis.sock, or what the topology makes of it; several, separated by blanks, for a
  // quorum.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string direct_url() const;  // the socket, for clients in the test's own process
  [[nodiscard]] std::string tcp_url() const;     // redis://127.0.0.1:PORT, or rediss://
  [[nodiscard]] std::filesystem::path socket_path() const { return m_dir / "redis.sock"; }
  [[nodiscard]] std::filesystem::path log_path() const { return m_dir / "redis.log"; }
  [[nodiscard]] std::uint16_t port() const { return m_port; }          // 0: no TCP
  [[nodiscard]] std::uint16_t bus_port() const { return m_bus_port; }  // 0: no cluster
  [[nodiscard]] pid_t pid() const { return m_process->pid(); }

  void stop_signal();  // accepts connections, answers nothing
  void cont();
  void step_clock(Millis by) const;  // its wall clock's, forwards or back; lasts through a restart
  void kill_hard();                  // SIGKILL; gone when this returns
  void restart();                    // SIGTERM if it runs, then the same command again, same socket and port

  // On a connection of its own. A server that does not answer fails the test case; error replies come back. On a quorum
  // all servers are asked, and the answer is that of most: any one of them may have missed a request.
  Reply command(const std::vector<std::string>& words) const;
  [[nodiscard]] std::vector<Reply> answers(const std::vector<std::string>& words) const;  // of each server of a quorum
  [[nodiscard]] Result<Reply> try_command(
      const std::vector<std::string>& words) const;  // an error when the server does not answer

 private:
  void start();
  void also(const std::function<void(RedisServer&)>& act) const;
  [[nodiscard]] Reply ask_alone(const std::vector<std::string>& words) const;
  [[nodiscard]] std::string ports() const;
  [[nodiscard]] std::map<std::string, std::optional<std::string>> own_clock() const;

  RedisOptions m_options;
  std::filesystem::path m_dir;
  std::uint16_t m_port = 0;
  std::uint16_t m_bus_port = 0;
  std::optional<Process> m_process;
  std::shared_ptr<Topology> m_topology;
};

// For other fixtures: the program, a port that is free now (another process may still take it), and one request on a
// connection of its own.
std::string server_program();
std::string client_program();  // the redis-cli or valkey-cli beside it
std::uint16_t free_port();
Result<Reply> ask(const Endpoint& endpoint, const std::vector<std::string>& words, Millis timeout);

// These fail the test case, showing the reply, when it is of another kind.
std::int64_t as_int(const Reply& reply);
std::string as_text(const Reply& reply);
std::vector<std::string> as_texts(const Reply& reply);  // an array of texts
std::string show(const Reply& reply);

// How often it has been called, by clients and from scripts, since the server began.
std::int64_t calls(const RedisServer& server, const std::string& command);

// rlock with this server, to its end. The first of `words` is the verb.
Finished rlock_on(const RedisServer& server, Words words, const ProcessOptions& options = {});

// Ends the server at this socket, which a `local:` test has started through rlock, and waits until
// it is gone.
void shut_down(const std::filesystem::path& socket);

}  // namespace rlock::test
