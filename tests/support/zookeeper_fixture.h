// SPDX-License-Identifier: Apache-2.0
// A private ZooKeeper ensemble of a test case, on free ports of 127.0.0.1 and with a directory of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "stores/zookeeper/zookeeper_client.h"
#include "support/certificates.h"
#include "support/database_server.h"
#include "support/tcp_relay.h"

namespace rlock::test {

// Whether this machine has ZooKeeper, and Java.
bool has_zookeeper();

// The shortest session is two ticks, the ensemble notices its end to within a tick.
struct ZookeeperOptions {
  std::size_t nodes = 1;
  Millis tick{200};
  Millis longest_session{120'000};
  std::optional<Certificate> certificate = std::nullopt;  // the members speak TLS with clients
  std::size_t longest_request = 0;                        // jute.maxbuffer; 0: that of ZooKeeper
  bool relays_peers = false;  // the members reach each other by relays, so that one can be cut off
};

class ZookeeperServer final : public ClusterServer {
 public:
  // Returns when each node has answered a request. Skips the test case where there is no ZooKeeper.
  explicit ZookeeperServer(ZookeeperOptions options = {});

  [[nodiscard]] std::string hosts() const { return hosts_at(ports()); }
  [[nodiscard]] std::string url() const override { return url(""); }
  [[nodiscard]] std::string url(const std::string& chroot, const std::string& login = "") const;
  [[nodiscard]] std::string url_at(std::span<const std::uint16_t> ports) const override
  {
    return "zookeeper://" + hosts_at(ports);
  }
  [[nodiscard]] std::unique_ptr<zookeeper::Client> client(const std::string& url, Millis session_timeout,
                                                          const Clock& clock) const;
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  [[nodiscard]] std::vector<std::string> lock_names() const override;
  void delete_locks() const override;
  void end_connections() override;

  [[nodiscard]] std::optional<std::size_t> find_leader() const override;
  void cut_off_member(std::size_t member) override;
  void join_members() override;
  void await_members() override;

 private:
  struct Way {
    std::size_t from;
    std::size_t to;
    std::unique_ptr<TcpRelay> relay;
  };
  [[nodiscard]] Words words_of_member(std::size_t node) const override;
  [[nodiscard]] bool serves(std::size_t node) const override;
  [[nodiscard]] std::filesystem::path directory_of(std::size_t node) const { return dir() / std::to_string(node); }
  void write_configuration(std::size_t node);

  ZookeeperOptions m_options;
  std::vector<std::uint16_t> m_peer_ports;
  std::vector<std::uint16_t> m_election_ports;
  std::vector<Way> m_ways;  // to the port for requests to a leader; empty: no relays
};

// The answer to a command of four letters; empty: none.
std::string zookeeper_word(std::uint16_t port, const std::string& word);

}  // namespace rlock::test
