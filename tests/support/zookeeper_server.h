// SPDX-License-Identifier: Apache-2.0
// A ZooKeeper ensemble as the store of a topology.
#pragma once

#include "support/database_server.h"
#include "support/tcp_relay.h"
#include "support/zookeeper_fixture.h"

namespace rlock::test {

class ZookeeperServer final : public DatabaseServer, public DatabaseMembers {
 public:
  // Skips the test case where there is no ZooKeeper.
  // `relays_peers`: the members reach each other by relays, so that one can be cut off.
  explicit ZookeeperServer(int nodes, bool relays_peers = false);

  [[nodiscard]] std::string url() const override { return m_nodes.url("/locks"); }
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override;
  [[nodiscard]] std::vector<std::string> lock_names() const override;
  void delete_locks() const override;
  void end_connections() const override;
  void start() override;
  [[nodiscard]] bool is_there() const override { return m_is_there; }
  void kill() override;
  void stop() override;
  void resume() override;

  DatabaseMembers* members() override { return this; }
  [[nodiscard]] std::size_t number_of_members() const override { return static_cast<std::size_t>(m_nodes.count()); }
  [[nodiscard]] std::uint16_t port_of(std::size_t member) const override { return m_nodes.port(node_of(member)); }
  [[nodiscard]] std::string url_at(std::span<const std::uint16_t> ports) const override;
  [[nodiscard]] std::optional<std::size_t> find_leader() const override;
  void kill_member(std::size_t member) override { m_nodes.kill(node_of(member)); }
  void start_member(std::size_t member) override { m_nodes.start(node_of(member)); }
  void stop_member(std::size_t member) override { m_nodes.stop(node_of(member)); }
  void resume_member(std::size_t member) override { m_nodes.resume(node_of(member)); }
  void cut_off_member(std::size_t member) override;
  void join_members() override;
  void await_members() override
  {
    m_nodes.start_ended();
    m_nodes.wait_until_answers();
  }

 private:
  struct Way {
    int from;
    int to;
    std::unique_ptr<TcpRelay> relay;
  };
  static int node_of(std::size_t member) { return static_cast<int>(member) + 1; }
  [[nodiscard]] ZookeeperOptions options(int nodes, bool relays_peers);

  std::vector<Way> m_ways;  // from member to member, to the port for requests to a leader; empty: no relays
  mutable ZookeeperNodes m_nodes;
  bool m_is_there = true;
};

}  // namespace rlock::test
