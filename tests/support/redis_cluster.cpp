// SPDX-License-Identifier: Apache-2.0
#include "support/redis_cluster.h"

#include "redis/slot_map.h"
#include "support/cluster_slots.h"
#include "support/give_up.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <optional>

namespace rlock::test {

using namespace std::chrono_literals;

namespace {

bool info_has(const RedisServer& node, const std::string& command, const std::string& section, const std::string& line)
{
  return as_text(node.command({command, section})).find(line) != std::string::npos;
}

bool is_node_alive(const RedisServer& node) { return ::kill(node.pid(), 0) == 0; }

}  // namespace

RedisCluster::RedisCluster(ClusterOptions options) : m_options(std::move(options))
{
  std::vector<std::string> args{"--cluster-node-timeout",
                                std::to_string(m_options.node_timeout.count()),
                                "--repl-diskless-sync-delay",
                                "0",
                                "--cluster-replica-validity-factor",
                                "0"};
  args.insert(args.end(), m_options.args.begin(), m_options.args.end());
  if (!m_options.password.empty()) {
    args.insert(args.end(), {"--masterauth", m_options.password});
  }
  std::optional<Certificate> certificate;
  if (m_options.tls != nullptr) {
    certificate = m_options.tls->sign("IP:127.0.0.1");
    args.insert(args.end(),
                {"--tls-cluster", "yes", "--tls-replication", "yes", "--tls-ca-cert-file", m_options.tls->file()});
  }
  for (std::size_t i = 0; i < m_options.masters * (m_options.replicas ? 2 : 1); ++i) {
    m_nodes.emplace_back(RedisOptions{.args = args,
                                      .tcp = true,
                                      .password = m_options.password,
                                      .tls = certificate,
                                      .own_clock = m_options.own_clock,
                                      .cluster = true});
  }
  join();
  if (m_options.replicas) {
    add_replicas();
  }
  wait_until_served();
}

void RedisCluster::join() const
{
  for (std::size_t i = 0; i < m_options.masters; ++i) {
    const std::size_t from = i * slot_count / m_options.masters;
    const std::size_t to = (i + 1) * slot_count / m_options.masters - 1;
    cluster_must(m_nodes[i], {"CLUSTER", "ADDSLOTSRANGE", std::to_string(from), std::to_string(to)});
  }
  for (std::size_t i = 0; i < m_nodes.size(); ++i) {
    cluster_must(m_nodes[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    cluster_must(m_nodes[0], {"CLUSTER", "MEET", "127.0.0.1", std::to_string(m_nodes[i].port()),
                              std::to_string(m_nodes[i].bus_port())});
  }
  const std::string all = "cluster_known_nodes:" + std::to_string(m_nodes.size()) + "\r";
  const auto knows_all = [&](const RedisServer& node) {
    return info_has(node, "CLUSTER", "INFO", all) && !info_has(node, "CLUSTER", "NODES", "handshake");
  };
  wait_until([&] { return std::all_of(m_nodes.begin(), m_nodes.end(), knows_all); }, "the nodes know each other", 30s);
}

void RedisCluster::add_replicas() const
{
  for (std::size_t i = 0; i < m_options.masters; ++i) {
    const RedisServer& replica = m_nodes[m_options.masters + i];
    cluster_must(replica, {"CLUSTER", "REPLICATE", cluster_id(m_nodes[i])});
    wait_until([&] { return info_has(replica, "INFO", "replication", "master_link_status:up"); }, "the replica follows",
               30s);
  }
}

void RedisCluster::wait_until_served() const
{
  const auto all_live = [&] {
    const auto owners = map().owners();
    return std::all_of(owners.begin(), owners.end(), [&](const HostPort& owner) { return is_node_alive(at(owner)); });
  };
  wait_until(all_live, "who was killed has been replaced", 60s);
  for (const RedisServer* node : living()) {
    wait_until([&] { return info_has(*node, "CLUSTER", "INFO", "cluster_state:ok"); }, "the cluster serves all slots",
               30s);
  }
  const auto agree = [&] {
    const auto nodes = living();
    return std::all_of(nodes.begin(), nodes.end(), [&](const RedisServer* node) {
      const SlotMap seen = seen_by(*node);
      return seen.owners() == map().owners() && seen.nodes().size() == map().nodes().size();
    });
  };
  wait_until(agree, "all nodes see the same cluster", 30s);
}

std::string RedisCluster::url() const
{
  std::string hosts;
  for (std::size_t i = 0; i < m_options.masters; ++i) {
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(m_nodes[i].port());
  }
  return (m_options.tls != nullptr ? "rediss+cluster://" : "redis+cluster://") + hosts;
}

RedisServer& RedisCluster::owner(const std::string& key) const
{
  const auto owner = map().owner(slot_of(key));
  if (!owner) {
    give_up("the slot of " + key + " has no owner");
  }
  return at(*owner);
}

RedisServer& RedisCluster::other_than(const RedisServer& node) const
{
  for (const HostPort& address : map().owners()) {
    RedisServer& other = at(address);
    if (&other != &node && is_node_alive(other)) {
      return other;
    }
  }
  give_up("no other master lives");
}

std::string RedisCluster::key_at(const RedisServer& node, const std::string& start) const
{
  const SlotMap slots = map();
  for (int i = 0;; ++i) {
    const std::string key = start + std::to_string(i);
    if (slots.owner(slot_of(key))->port == node.port()) {
      return key;
    }
  }
}

Reply RedisCluster::command(const std::vector<std::string>& words) const
{
  return owner(words.size() > 1 ? words[1] : "").command(words);
}

void RedisCluster::begin_to_move_slot(const std::string& key, RedisServer& to) const
{
  test::begin_to_move_slot(std::to_string(slot_of(key)), owner(key), to);
}

void RedisCluster::move_slot(const std::string& key, RedisServer& to) const
{
  const RedisServer& from = owner(key);
  REQUIRE(&from != &to);
  test::move_slot(std::to_string(slot_of(key)), from, to, m_options.password);
}

void RedisCluster::mend_slots() const { test::mend_slots(m_nodes, m_options.password); }

std::string RedisCluster::describe() const
{
  std::string text;
  for (const RedisServer& node : m_nodes) {
    text += "port " + std::to_string(node.port()) + (is_node_alive(node) ? "" : ", which is dead") + ":\n";
    for (const char* question : {"INFO", "NODES"}) {
      const auto reply = node.try_command({"CLUSTER", question});
      text += reply ? reply->text : reply.error().text + '\n';
    }
  }
  return text;
}

std::vector<RedisServer*> RedisCluster::living() const
{
  std::vector<RedisServer*> alive;
  for (RedisServer& node : m_nodes) {
    if (is_node_alive(node)) {
      alive.push_back(&node);
    }
  }
  REQUIRE_FALSE(alive.empty());
  return alive;
}

// By TLS if the nodes have it: only a TLS client is told the TLS ports.
SlotMap RedisCluster::seen_by(const RedisServer& node) const
{
  const HostPort at{"127.0.0.1", node.port()};
  if (m_options.tls == nullptr) {
    return {node.command({"CLUSTER", "SLOTS"}), at};
  }
  Endpoint endpoint;
  endpoint.port = node.port();
  endpoint.password = m_options.password;
  endpoint.tls = TlsFiles{.authorities = m_options.tls->file(), .certificate = {}, .key = {}};
  const auto slots = ask(endpoint, {"CLUSTER", "SLOTS"}, 10s);
  REQUIRE_MESSAGE(slots, slots.error().text);
  return {*slots, at};
}

// The map of the node that knows the latest change.
SlotMap RedisCluster::map() const
{
  const RedisServer* wisest = nullptr;
  std::int64_t latest = -1;
  for (const RedisServer* node : living()) {
    const std::string info = as_text(node->command({"CLUSTER", "INFO"}));
    const std::string mark = "cluster_current_epoch:";
    const std::int64_t epoch = std::stoll(info.substr(info.find(mark) + mark.size()));
    if (epoch > latest) {
      latest = epoch;
      wisest = node;
    }
  }
  return seen_by(*wisest);
}

RedisServer& RedisCluster::at(const HostPort& address) const
{
  const auto node = std::find_if(m_nodes.begin(), m_nodes.end(),
                                 [&](const RedisServer& each) { return each.port() == address.port; });
  REQUIRE(node != m_nodes.end());
  return *node;
}

}  // namespace rlock::test
