// SPDX-License-Identifier: Apache-2.0
// A real cluster: masters on free ports, each with a share of the slots, and replicas.
#pragma once

#include "base/clock.h"
#include "redis/slot_map.h"
#include "support/certificates.h"
#include "support/redis_fixture.h"

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace rlock::test {

struct ClusterOptions {
  std::size_t masters = 3;
  bool replicas = false;  // each master has a replica
  Millis node_timeout{
      15'000};  // how long until a silent node counts as gone; with a short time, a busy machine loses nodes
  std::vector<std::string> args;  // of every node
  std::string password;
  const Authority* tls =
      nullptr;  // signs the certificates of all nodes, which then use only TLS, also among each other; must outlive them
  bool own_clock = false;  // RedisServer::step_clock works
};

// The cluster serves all slots when the constructor is done, and each replica has the data of its master.
class RedisCluster {
 public:
  using Options = ClusterOptions;
  explicit RedisCluster(ClusterOptions options = {});

  [[nodiscard]] std::string url()
      const;  // redis+cluster://127.0.0.1:P,…, or rediss+cluster://…, with the first masters
  [[nodiscard]] RedisServer& owner(const std::string& key) const;  // the owner of the slot, as a living node knows it
  [[nodiscard]] RedisServer& other_than(const RedisServer& node) const;  // a living master
  [[nodiscard]] std::string key_at(const RedisServer& node,
                                   const std::string& start) const;         // a name in a slot of `node`
  [[nodiscard]] std::deque<RedisServer>& nodes() const { return m_nodes; }  // masters first

  // Sends a command to the owner of the second word, or to any node if that word is no key.
  [[nodiscard]] Reply command(const std::vector<std::string>& words) const;

  // Moves the slot of this key with its keys to another master, as an operator would.
  void move_slot(const std::string& key, RedisServer& to) const;
  // Begins such a move: the slot is being moved, but none of its keys has moved.
  void begin_to_move_slot(const std::string& key, RedisServer& to) const;

  // Ends all moves that were cut off. All nodes must answer.
  void mend_slots() const;

  void wait_until_served() const;              // returns when the living nodes serve all slots
  [[nodiscard]] std::string describe() const;  // what each node says of the cluster

 private:
  void join() const;
  void add_replicas() const;
  [[nodiscard]] std::vector<RedisServer*> living() const;
  [[nodiscard]] SlotMap seen_by(const RedisServer& node) const;
  [[nodiscard]] SlotMap map() const;
  [[nodiscard]] RedisServer& at(const HostPort& address) const;

  ClusterOptions m_options;
  mutable std::deque<RedisServer> m_nodes;
};

}  // namespace rlock::test

#define CLUSTER_CASE(title) CASE_WITH(rlock::test::RedisCluster, cluster, title)
