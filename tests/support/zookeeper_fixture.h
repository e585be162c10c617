// SPDX-License-Identifier: Apache-2.0
// A private ZooKeeper ensemble of a test case, on free ports of 127.0.0.1 and with a directory of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "stores/zookeeper/zookeeper_client.h"
#include "support/certificates.h"
#include "support/process.h"

namespace rlock::test {

// Whether this machine has ZooKeeper, and Java.
bool has_zookeeper();

// The shortest session is two ticks, the ensemble notices its end to within a tick.
struct ZookeeperOptions {
  int nodes = 1;
  Millis tick{200};
  Millis longest_session{120'000};
  std::optional<Certificate> certificate = std::nullopt;  // the members speak TLS with clients
  std::size_t longest_request = 0;                        // jute.maxbuffer; 0: that of ZooKeeper
  // The port by which node `from` reaches the port `to_port` of node `to`; nodes count from 1. Such as that of a relay. Empty: `to_port`.
  std::function<std::uint16_t(int from, int to, std::uint16_t to_port)> peer_port = {};
};

class ZookeeperNodes {
 public:
  // Returns when each node has answered a request. Skips the test case where there is no ZooKeeper.
  explicit ZookeeperNodes(ZookeeperOptions options = {});

  [[nodiscard]] std::string hosts() const;  // "127.0.0.1:4711,127.0.0.1:4712"
  [[nodiscard]] std::string url(const std::string& chroot = "", const std::string& login = "") const;
  [[nodiscard]] std::string url_of(int node) const;
  [[nodiscard]] std::unique_ptr<zookeeper::Client> client(const std::string& url, Millis session_timeout,
                                                          const Clock& clock) const;
  [[nodiscard]] int leader() const;  // 0: none
  void kill(int node);               // kill -9
  void start(int node);              // after kill()
  // Starts the nodes that have ended by themselves, and tells of each on standard error.
  void start_ended();
  void stop(int node) const;  // SIGSTOP
  void resume(int node) const;
  [[nodiscard]] std::uint16_t port(int node) const { return m_nodes[static_cast<std::size_t>(node - 1)].port; }
  [[nodiscard]] int count() const { return static_cast<int>(m_nodes.size()); }
  void wait_until_answers();

 private:
  [[nodiscard]] std::string scheme() const { return m_options.certificate ? "zookeeper+tls://" : "zookeeper://"; }
  struct Node {
    std::filesystem::path dir;
    std::uint16_t port = 0;
    std::uint16_t peer_port = 0;
    std::uint16_t election_port = 0;
    std::unique_ptr<Process> process = nullptr;
  };
  void write_configuration(int node) const;

  ZookeeperOptions m_options;
  std::vector<Node> m_nodes;
};

// The answer to a command of four letters; empty: none.
std::string zookeeper_word(std::uint16_t port, const std::string& word);

}  // namespace rlock::test
