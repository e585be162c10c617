// SPDX-License-Identifier: Apache-2.0
// A private etcd cluster of a test case: one node or several, on free ports of the loopback interface.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "stores/etcd/etcd_connection.h"
#include "support/certificates.h"
#include "support/database_server.h"
#include "support/etcd_peers.h"

namespace rlock::test {

// Whether this machine has etcd, and rlock's library for it.
bool has_etcd();

struct EtcdOptions {
  std::size_t nodes = 1;
  // The nodes speak TLS with it, and demand a client certificate of this authority.
  const Authority* authority = nullptr;
  std::vector<std::string> args = {};  // further arguments of each node
  bool relays_peers = false;           // the nodes reach each other by relays: cut_off()
};

class EtcdServer final : public ClusterServer {
 public:
  // Skips the test case where there is no etcd.
  explicit EtcdServer(EtcdOptions options = {});

  [[nodiscard]] std::string url() const override { return url("app"); }
  [[nodiscard]] std::string url(const std::string& prefix, const std::string& login = "") const;
  [[nodiscard]] std::string url_of_node(std::size_t node) const;
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  [[nodiscard]] std::vector<std::string> lock_names() const override;
  void delete_locks() const override;
  void end_connections() override;
  [[nodiscard]] std::string url_at(std::span<const std::uint16_t> ports) const override;
  [[nodiscard]] std::optional<std::size_t> find_leader() const override;
  void cut_off_member(std::size_t member) override;
  void join_members() override;

  // Runs etcdctl(1), and returns what it prints.
  [[nodiscard]] std::string etcdctl(Words words) const;
  // The user root with this password; from now on each client must log in.
  void demand_login(const std::string& password);

  // With the certificates of the options.
  [[nodiscard]] etcd::ConnectionSpec spec(const std::string& url) const;

 private:
  [[nodiscard]] Words words_of_member(std::size_t node) const override;
  [[nodiscard]] bool serves(std::size_t node) const override;
  [[nodiscard]] std::string base_url(std::uint16_t port) const;
  [[nodiscard]] std::string url_of(std::span<const std::uint16_t> ports, const std::string& prefix,
                                   const std::string& login) const;

  EtcdOptions m_options;
  std::optional<Certificate> m_certificate;
  std::string m_root_password;
  std::vector<std::uint16_t> m_peer_ports;
  std::unique_ptr<EtcdPeers> m_peers;  // nullptr: no relays
};

}  // namespace rlock::test

#define ETCD_CASE(title) CASE_WITH(rlock::test::EtcdServer, server, title)
