// SPDX-License-Identifier: Apache-2.0
#include "support/redis_cluster.h"

#include "server/slot.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>

namespace rlock::test {

using namespace std::chrono_literals;

namespace {

bool info_has(const RedisServer& node, const std::string& command, const std::string& section, const std::string& line)
{
  return as_text(node.command({command, section})).find(line) != std::string::npos;
}

std::string id_of(const RedisServer& node) { return as_text(node.command({"CLUSTER", "MYID"})); }

void must(const RedisServer& node, const std::vector<std::string>& words)
{
  const Reply reply = node.command(words);
  REQUIRE_MESSAGE(!reply.is_error(), words[0] << ' ' << words[1] << ": " << show(reply));
}

bool is_alive(const RedisServer& node) { return ::kill(node.pid(), 0) == 0; }

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
    must(m_nodes[i], {"CLUSTER", "ADDSLOTSRANGE", std::to_string(from), std::to_string(to)});
  }
  for (std::size_t i = 0; i < m_nodes.size(); ++i) {
    must(m_nodes[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    must(m_nodes[0],
         {"CLUSTER", "MEET", "127.0.0.1", std::to_string(m_nodes[i].port()), std::to_string(m_nodes[i].bus_port())});
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
    must(replica, {"CLUSTER", "REPLICATE", id_of(m_nodes[i])});
    wait_until([&] { return info_has(replica, "INFO", "replication", "master_link_status:up"); }, "the replica follows",
               30s);
  }
}

void RedisCluster::wait_until_served() const
{
  const auto all_live = [&] {
    const auto owners = map().owners();
    return std::all_of(owners.begin(), owners.end(), [&](const HostPort& owner) { return is_alive(at(owner)); });
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
  REQUIRE(owner);
  return at(*owner);
}

RedisServer& RedisCluster::other_than(const RedisServer& node) const
{
  for (const HostPort& address : map().owners()) {
    RedisServer& other = at(address);
    if (&other != &node && is_alive(other)) {
      return other;
    }
  }
  FAIL("no other master lives");
  throw;  // not reached
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
  const RedisServer& from = owner(key);
  const std::string slot = std::to_string(slot_of(key));
  must(to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(from)});
  must(from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(to)});
}

void RedisCluster::move_slot(const std::string& key, RedisServer& to) const
{
  RedisServer& from = owner(key);
  REQUIRE(&from != &to);
  begin_to_move_slot(key, to);
  const std::string slot = std::to_string(slot_of(key));
  const std::string port = std::to_string(to.port());
  for (;;) {
    const auto keys = as_texts(from.command({"CLUSTER", "GETKEYSINSLOT", slot, "100"}));
    if (keys.empty()) {
      break;
    }
    std::vector<std::string> words{"MIGRATE", "127.0.0.1", port, "", "0", "10000"};
    if (!m_options.password.empty()) {
      words.insert(words.end(), {"AUTH", m_options.password});
    }
    words.emplace_back("KEYS");
    words.insert(words.end(), keys.begin(), keys.end());
    must(from, words);
  }
  const std::string id = id_of(to);
  must(to, {"CLUSTER", "SETSLOT", slot, "NODE", id});
  must(from, {"CLUSTER", "SETSLOT", slot, "NODE", id});
}

std::vector<RedisServer*> RedisCluster::living() const
{
  std::vector<RedisServer*> alive;
  for (RedisServer& node : m_nodes) {
    if (is_alive(node)) {
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
