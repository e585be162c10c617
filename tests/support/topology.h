// SPDX-License-Identifier: Apache-2.0
// The kind of server that the test cases use (RLOCK_TEST_ON). url() of a test's RedisServer leads to such a server.
#pragma once

#include "base/reply.h"
#include "base/result.h"

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

class RedisServer;
struct RedisOptions;

enum class TopologyKind {
  unix_socket,
  tcp,
  tls,
  acl,       // as a user with the rights that `rlock acl` prints
  sentinel,  // through one sentinel, which never promotes another server
  cluster,   // the server is a complete cluster
  quorum3,   // the server is the first of three; what a test does to that server is done to all three
  quorum5,
  database,  // the locks are in one of databases.h; commands of a test work on the records of the locks
};

TopologyKind topology_kind();  // an unknown one fails the test case
bool is_quorum_topology();

// Skips the test case on these topologies.
void skip_on(std::initializer_list<TopologyKind> kinds, const std::string& why);
void skip_on_quorum(const std::string& why);
void skip_on_databases(const std::string& why);

// The variables that rlock needs besides the URL: certificates, a password. clean_environment adds them.
std::map<std::string, std::string> topology_environment();

// What stands between rlock and a server, unless the test asks for a port, a password or TLS.
class Topology {
 public:
  virtual ~Topology() = default;
  [[nodiscard]] virtual std::string url() const = 0;
  virtual void started(const RedisServer&) {}  // called after a start or restart
  [[nodiscard]] virtual std::vector<std::string> translated(std::vector<std::string> words) const { return words; }
  virtual void for_other_servers(const std::function<void(RedisServer&)>&) {
  }  // calls the function for the other servers of a quorum
  // A store that is no Redis answers the commands of a test itself; nullopt: the Redis server does. Skips the test case when only
  // a Redis server knows the answer.
  [[nodiscard]] virtual std::optional<Result<Reply>> answer(const std::vector<std::string>&) const
  {
    return std::nullopt;
  }
  virtual void signal_store(int) {}  // STOP, CONT, or KILL, after which restart_store() starts it again
  virtual void restart_store() {}
};
bool uses_topology(const RedisOptions& options);
RedisOptions topology_options(RedisOptions options);
std::shared_ptr<Topology> make_topology(const RedisServer& server, const RedisOptions& options);  // nullptr: none

}  // namespace rlock::test
