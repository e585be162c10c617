// SPDX-License-Identifier: Apache-2.0
// A real redis-server, or valkey-server; RLOCK_TEST_SERVER names another program.
#pragma once

#include "base/clock.h"
#include "redis/codec.h"
#include "redis/url.h"
#include "support/certificates.h"
#include "support/process.h"
#include "support/topology.h"

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
  std::vector<std::string>
      args;              // such as {"--maxmemory", "3mb"}; they take precedence over the arguments of the fixture
  bool tcp = false;      // listens on a free port of 127.0.0.1 besides its socket
  std::string password;  // the password of the default user; command() uses it
  std::optional<Certificate> tls = std::nullopt;  // the server's certificate: with `tcp`, the port uses TLS
  bool alone = false;                             // a plain server on every topology (topology.h)
  bool own_clock = false;                         // step_clock works
  bool clock_stands = false;   // with own_clock: the server's clock is at 1970, and only step_clock moves it
  std::string client_ca = {};  // the authority that must have signed a client's certificate; empty: clients need none
  bool cluster = false;        // a cluster of one node, with a bus port
};

// The server answers PING when the constructor is done. It stores no data on disk unless args say so; its files and its log are
// in a directory of their own. On a machine without redis-server the test case is skipped.
class RedisServer {
 public:
  using Options = RedisOptions;
  explicit RedisServer(RedisOptions options = {});

  // The URL for rlock: unix:///tmp/…/redis.sock, or the URL of the topology; a quorum has several, separated by blanks.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string direct_url() const;  // the socket, for clients in the process of the test
  [[nodiscard]] std::string tcp_url() const;     // redis://127.0.0.1:PORT, or rediss://
  [[nodiscard]] std::filesystem::path socket_path() const { return m_dir / "redis.sock"; }
  [[nodiscard]] std::filesystem::path log_path() const { return m_dir / "redis.log"; }
  [[nodiscard]] std::uint16_t port() const { return m_port; }          // 0: no TCP
  [[nodiscard]] std::uint16_t bus_port() const { return m_bus_port; }  // 0: no cluster
  [[nodiscard]] pid_t pid() const { return m_process->pid(); }

  void stop_signal();  // the server accepts connections, but gives no answers
  void cont();
  void step_clock(Millis by) const;  // steps the server's wall clock forwards or back; a restart keeps the step
  void kill_hard();                  // sends SIGKILL; the server is gone at the return
  void restart();  // sends SIGTERM if the server runs, then starts the same command on the same socket and port

  // Sends a command on a connection of its own and returns the reply, which may be an error reply. A server that does not answer
  // fails the test case. On a quorum, asks all servers and returns the answer of most, because any one of them may have missed a
  // request.
  Reply command(const std::vector<std::string>& words) const;
  [[nodiscard]] std::vector<Reply> answers(
      const std::vector<std::string>& words) const;  // the answers of all servers of a quorum
  [[nodiscard]] Result<Reply> try_command(
      const std::vector<std::string>& words) const;  // an Error: the server does not answer

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

// These serve other fixtures: the program, and one request on a connection of its own.
std::string server_program();
std::string client_program();  // the redis-cli or valkey-cli beside the server program
Result<Reply> ask(const Endpoint& endpoint, const std::vector<std::string>& words, Millis timeout);

// These fail the test case, and show the reply, if the reply is of another kind.
std::int64_t as_int(const Reply& reply);
std::string as_text(const Reply& reply);
std::vector<std::string> as_texts(const Reply& reply);  // an array of texts
std::string show(const Reply& reply);

// How often clients and scripts have called the command since the start of the server.
std::int64_t calls_of(const RedisServer& server, const std::string& command);

// rlock with this server: to its end, or at once. The first of `words` is the verb.
Finished rlock_on(const RedisServer& server, Words words, const ProcessOptions& options = {});
Process start_on(const RedisServer& server, Words words, const ProcessOptions& options = {});

// `rlock run OPTIONS -- JOB`, which has the lock when this returns: "k", unless OPTIONS begin with -k.
Process held_run(const RedisServer& server, Words options = {}, const Words& job = {"sleep", "60"});
bool is_held(const RedisServer& server, const std::string& key = "k");
// How many owners of locks, holders and waiters, listen to their channels.
std::size_t listening(const RedisServer& server);

// Ends the server at this socket, which rlock has started in a test of `local:`, and waits until the server is gone.
void shut_down(const std::filesystem::path& socket);

}  // namespace rlock::test
