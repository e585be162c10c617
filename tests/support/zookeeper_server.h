// SPDX-License-Identifier: Apache-2.0
// A ZooKeeper ensemble as the store of a topology.
#pragma once

#include "support/database_server.h"
#include "support/zookeeper_fixture.h"

namespace rlock::test {

class ZookeeperServer final : public DatabaseServer {
 public:
  // Skips the test case where there is no ZooKeeper.
  explicit ZookeeperServer(int nodes);

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

 private:
  mutable ZookeeperNodes m_nodes;
  bool m_is_there = true;
};

}  // namespace rlock::test
