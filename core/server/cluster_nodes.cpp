// SPDX-License-Identifier: Apache-2.0
#include "server/cluster_nodes.h"

#include "net/errors.h"
#include "server/group.h"
#include "server/slot.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace rlock {
namespace {

CallLimits share_of(const CallLimits& limit, const Clock& clock, std::int64_t parts)
{
  const Instant now = clock.now();
  return {now + std::max(limit.deadline - now, Instant::duration{0}) / parts, limit.stop};
}

bool hides_its_map(const Reply& reply)
{
  return reply.text.starts_with("NOPERM") || reply.text.starts_with("ERR unknown") ||
         reply.text.starts_with("ERR Unknown");
}

}  // namespace

CallLimits half_of(const CallLimits& limit, const Clock& clock) { return share_of(limit, clock, 2); }

ClusterNodes::ClusterNodes(Endpoint cluster, const Clock& clock)
    : m_cluster(std::move(cluster)), m_clock(clock), m_nodes(m_cluster.nodes)
{
}

Result<HostPort> ClusterNodes::owner_of(std::string_view key, const CallLimits& limit)
{
  if (!m_map) {
    if (const auto fetched = fetch_map(limit); !fetched) {
      return fetched.error();
    }
  }
  const auto owner = key.empty() ? std::nullopt : m_map->owner(slot_of(key));
  return owner.value_or(m_nodes.front());
}

Result<Connection*> ClusterNodes::connection_to(const HostPort& node, const CallLimits& limit)
{
  if (Connection* const known = connection_if_open(node)) {
    return known;
  }
  auto opened = open_connection(node, limit);
  if (!opened) {
    return opened.error();
  }
  return &m_connections.emplace(node, *std::move(opened)).first->second;
}

Result<Connection*> ClusterNodes::reach(HostPort& node, std::string_view key, const CallLimits& limit)
{
  const auto connection = connection_to(node, half_of(limit, m_clock));
  if (connection || !is_passing(connection.error().code)) {
    return connection;
  }
  distrust(node);
  const auto successor = owner_of(key, limit);
  if (!successor || *successor == node) {
    return connection;
  }
  node = *successor;
  return connection_to(node, limit);
}

Connection* ClusterNodes::connection_if_open(const HostPort& node)
{
  const auto known = m_connections.find(node);
  return known == m_connections.end() ? nullptr : &known->second;
}

Result<Connection> ClusterNodes::open_connection(const HostPort& node, const CallLimits& limit) const
{
  return Connection::open(endpoint_of(node), m_clock, limit);
}

// The first numbers whose slots belong to different masters.
Result<std::vector<std::string>> ClusterNodes::key_of_each_owner(const CallLimits& limit)
{
  if (const auto fetched = fetch_map(limit); !fetched) {
    return fetched.error();
  }
  std::set<HostPort> missing = m_map->owners();
  if (missing.empty()) {
    return Error{ErrorCode::refused,
                 m_nodes.front().host + " does not tell which nodes are in the cluster (allow CLUSTER SLOTS there)"};
  }
  std::vector<std::string> keys;
  constexpr unsigned most_numbers = 64 * slot_count;  // enough of them to meet every slot
  for (unsigned number = 0; number < most_numbers && !missing.empty(); ++number) {
    const std::string key = std::to_string(number);
    const auto owner = m_map->owner(slot_of(key));
    if (owner && missing.erase(*owner) > 0) {
      keys.push_back(key);
    }
  }
  return keys;
}

void ClusterNodes::follow(const Redirection& redirection)
{
  note(redirection.to);
  if (m_map && redirection.kind == Redirection::Kind::moved) {
    m_map->moved(redirection.slot, redirection.to);
  }
}

void ClusterNodes::distrust(const HostPort& node)
{
  m_connections.erase(node);
  m_map.reset();
  const auto at = std::find(m_nodes.begin(), m_nodes.end(), node);
  if (at != m_nodes.end()) {
    std::rotate(at, at + 1, m_nodes.end());
  }
}

void ClusterNodes::forget()
{
  m_connections.clear();
  m_map.reset();
}

Endpoint ClusterNodes::endpoint_of(const HostPort& node) const { return server_at(m_cluster, node); }

Result<Done> ClusterNodes::fetch_map(const CallLimits& limit)
{
  const std::vector<HostPort> nodes = m_nodes;
  auto untried = static_cast<std::int64_t>(nodes.size());
  std::optional<Error> last;
  for (const HostPort& node : nodes) {
    auto map = ask_for_map(node, share_of(limit, m_clock, untried--));
    if (map) {
      m_map = *std::move(map);
      for (const HostPort& other : m_map->nodes()) {
        note(other);
      }
      return Done{};
    }
    last = map.error();
    if (!is_passing(last->code)) {
      return *last;
    }
    distrust(node);
  }
  const bool several = nodes.size() > 1;
  return Error{last->code, (several ? "no node of " + shown() + " answers, the last one: " : "") + last->text};
}

Result<SlotMap> ClusterNodes::ask_for_map(const HostPort& node, const CallLimits& limit)
{
  const auto connection = connection_to(node, limit);
  if (!connection) {
    return connection.error();
  }
  constexpr std::array<std::string_view, 2> argv{"CLUSTER", "SLOTS"};
  const auto reply = (*connection)->call(argv, limit);
  if (!reply) {
    return reply.error();
  }
  if (!reply->is_error() || hides_its_map(*reply)) {
    return SlotMap(*reply, node);
  }
  const std::string where = endpoint_of(node).shown();
  if (reply->text.find("cluster support disabled") != std::string::npos) {
    return Error{ErrorCode::config, where + " is no node of a cluster (use -S " + where + ")"};
  }
  return error_from_reply(reply->text, where);
}

void ClusterNodes::note(const HostPort& node)
{
  if (std::find(m_nodes.begin(), m_nodes.end(), node) == m_nodes.end()) {
    m_nodes.push_back(node);
  }
}

}  // namespace rlock
