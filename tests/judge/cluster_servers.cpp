// SPDX-License-Identifier: Apache-2.0
// Three masters with a replica each. As with sentinels, a master that is not meant to be replaced is away only for less
// than node_timeout.
#include "judge/redirection.h"
#include "judge/topologies.h"

#include "support/redis_cluster.h"
#include "support/wait_until.h"

#include <chrono>
#include <stdexcept>
#include <thread>

namespace rlock::judge {
namespace {

using namespace std::chrono_literals;

constexpr Millis node_timeout{3000};  // of the nodes with a silent node

bool is_master(const test::RedisServer& node)
{
  const Reply role = node.command({"ROLE"});
  return !role.elements.empty() && role.elements[0].text == "master";
}

class ClusterServers final : public Servers {
 public:
  ClusterServers()
      : m_cluster({.replicas = true, .node_timeout = node_timeout, .args = fault_options().args, .own_clock = true}),
        m_ways(m_cluster.nodes())
  {
  }

  [[nodiscard]] Words options() const override { return {"-S", m_cluster.url()}; }
  [[nodiscard]] std::map<std::string, std::string> environment() const override { return m_ways.environment(); }
  void ask_each(const std::function<void(const Ask&)>& visit) override { m_ways.ask_each_master(visit); }

  std::vector<ServerFault> faults(const Words& keys) override
  {
    std::vector<ServerFault> all;
    const auto owner = [this](Rng&, const std::string& key) { return std::vector{m_ways.of(m_cluster.owner(key))}; };
    add_faults(all, network_recipes(), owner, keys);
    add_faults(all, state_recipes(), owner, keys);
    step_clocks_together(all, m_cluster.nodes());
    add_away(all, {.master = [this, keys](Rng& rng) { return &owner_of_some(keys, rng); },
                   .replica = [this](Rng& rng) { return &replica(rng); },
                   .await_master = [this](const test::RedisServer&) { m_cluster.wait_until_served(); },
                   .await_replica = [this](const test::RedisServer& node) { await_replica(node); },
                   .fail_over_after = node_timeout});
    add_changes(all, keys);
    watch_fail_overs(all, [this, keys] { return owners_of(keys); },
                     {"fail-over-kill", "fail-over-stop", "fail-over-command", "slot-move"});
    return all;
  }

  void settle() override
  {
    try {
      for (const ServerTarget& target : m_ways.targets()) {
        mend(target);
      }
      m_cluster.mend_slots();
      m_cluster.wait_until_served();
      for (const test::RedisServer& node : m_cluster.nodes()) {
        await_replica(node);
      }
    } catch (const std::exception& failed) {
      throw std::runtime_error(failed.what() + ("\n" + m_cluster.describe()));
    }
  }

 private:
  void add_changes(std::vector<ServerFault>& all, const Words& keys)
  {
    all.push_back(guarded_fault("fail-over-kill", Excuse::fail_over, [this, keys](Rng& rng) {
      test::RedisServer& old = owner_of_some(keys, rng);
      old.kill_hard();
      m_cluster.wait_until_served();
      old.restart();
      await_replica(old);
      return true;
    }));
    all.push_back(guarded_fault("fail-over-stop", Excuse::fail_over, [this, keys](Rng& rng) {
      const std::string& key = keys[below(rng, keys.size())];
      test::RedisServer& old = m_cluster.owner(key);
      old.stop_signal();
      std::this_thread::sleep_for(node_timeout * 2);
      old.cont();
      test::wait_until([&] { return !is_master(old); }, "the node that was away follows another", 30s);
      m_cluster.wait_until_served();
      return true;
    }));
    // The master lets its replica catch up before it gives way, so nothing may be lost.
    all.push_back(guarded_fault("fail-over-command", Excuse::none, [this](Rng& rng) {
      test::RedisServer& next = replica(rng);
      next.command({"CLUSTER", "FAILOVER"});
      test::wait_until([&] { return is_master(next); }, "the replica is the master", 10s);
      m_cluster.wait_until_served();
      return true;
    }));
    all.push_back(guarded_fault("slot-move", Excuse::none, [this, keys](Rng& rng) {
      const std::string& key = keys[below(rng, keys.size())];
      m_cluster.move_slot(key, m_cluster.other_than(m_cluster.owner(key)));
      m_cluster.wait_until_served();
      return true;
    }));
  }

  test::RedisServer& owner_of_some(const Words& keys, Rng& rng)
  {
    return m_cluster.owner(keys[below(rng, keys.size())]);
  }

  std::string owners_of(const Words& keys)
  {
    std::string ports;
    for (const std::string& key : keys) {
      ports += std::to_string(m_cluster.owner(key).port()) + " ";
    }
    return ports;
  }

  test::RedisServer& replica(Rng& rng)
  {
    std::vector<test::RedisServer*> all;
    for (test::RedisServer& node : m_cluster.nodes()) {
      if (!is_master(node)) {
        all.push_back(&node);
      }
    }
    return *all.at(below(rng, all.size()));
  }

  // Without replicas the next fail-over would lose data.
  void await_replica(const test::RedisServer& node) const
  {
    const auto follows = [&] {
      const auto info = node.try_command({"INFO", "replication"});
      return info && (info->text.find("master_link_status:up") != std::string::npos ||
                      info->text.find("role:master") != std::string::npos);
    };
    test::wait_until(follows, "the node follows its master or is one", 30s);
    m_cluster.wait_until_served();
  }

  test::RedisCluster m_cluster;
  Redirection m_ways;  // its proxies end before the servers
};

}  // namespace

std::unique_ptr<Servers> make_cluster_servers() { return std::make_unique<ClusterServers>(); }

}  // namespace rlock::judge
