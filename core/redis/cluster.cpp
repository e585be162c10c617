// SPDX-License-Identifier: Apache-2.0
#include "redis/cluster.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include "base/in_turn.h"
#include "net/byte_stream.h"
#include "redis/codec.h"
#include "redis/sentinel.h"
#include "redis/slot_map.h"

namespace rlock {
namespace {

constexpr int most_redirections = 8;
constexpr Millis first_redirection_pause{5};  // after TRYAGAIN; doubles up to the longest
constexpr Millis longest_redirection_pause{100};

bool is_try_again(const Reply& reply) { return reply.is_error() && reply.text.starts_with("TRYAGAIN"); }

Error too_many_redirections(const ClusterNodes& nodes)
{
  return {ErrorCode::server_not_ready, nodes.shown() + " redirects requests in a circle (see CLUSTER NODES there)"};
}

std::vector<std::string_view> argv_of(const Request& request) { return {request.words.begin(), request.words.end()}; }

// A node serves a slot that is being moved to it only to a request that follows ASKING on the same connection.
Result<Reply> call_with_asking(Connection& connection, std::span<const std::string_view> argv, const CallLimits& limit)
{
  constexpr std::array<std::string_view, 1> asking{"ASKING"};
  for (const auto words : {std::span<const std::string_view>(asking), argv}) {
    RETURN_IF_ERROR(connection.send(words, limit));
  }
  auto allowed = connection.answer(limit);
  if (!allowed) {
    return allowed;
  }
  auto reply = connection.answer(limit);
  return reply && allowed->is_error() ? allowed : reply;
}

// The requests of one call_each that go to the same node.
struct Batch {
  HostPort node;
  std::vector<std::size_t> which;
  Connection* connection = nullptr;  // nullptr: the node could not be reached
  Result<Done> state = Done{};
};

Result<std::vector<Batch>> batches_by_node(ClusterNodes& nodes, std::span<const Request> requests,
                                           const CallLimits& limit)
{
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSIGN_OR_RETURN(const auto node, nodes.owner_of(requests[i].route_key, limit));
    auto batch = std::find_if(batches.begin(), batches.end(), [&](const Batch& each) { return each.node == node; });
    if (batch == batches.end()) {
      batch = batches.insert(batches.end(), {.node = node, .which = {}});
    }
    batch->which.push_back(i);
  }
  return batches;
}

void send(Batch& batch, Connection& connection, std::span<const Request> requests, const CallLimits& limit)
{
  batch.connection = &connection;
  for (const std::size_t i : batch.which) {
    batch.state = batch.state ? connection.send(argv_of(requests[i]), limit) : batch.state;
  }
}

// An Error for an error reply, except that a script is unknown.
Result<Reply> checked(Result<Reply> reply, const HostPort& node, const ClusterNodes& nodes)
{
  if (reply && reply->is_error() && !is_unknown_script(reply->text)) {
    return error_from_reply(reply->text, nodes.endpoint_of(node).shown());
  }
  return reply;
}

// Fills `answers`, in the order of the requests. nullopt: the request must be sent alone, because its node could not be reached
// or has redirected the request. After a failed request the replies to the later requests are unknown: each of them is an Error.
void receive(Batch& batch, ClusterNodes& nodes, std::vector<std::optional<Result<Reply>>>& answers,
             const CallLimits& limit)
{
  if (batch.connection == nullptr) {
    return;
  }
  for (const std::size_t i : batch.which) {
    auto reply = batch.state ? batch.connection->answer(limit) : Result<Reply>(batch.state.error());
    if (reply && (redirection_in(*reply, batch.node) || is_try_again(*reply))) {
      continue;
    }
    batch.state = reply ? batch.state : Result<Done>(reply.error());
    answers[i] = checked(std::move(reply), batch.node, nodes);
  }
  if (!batch.state) {
    nodes.distrust(batch.node);
  }
}

// The connections of one subscription.
struct Receivers {
  std::vector<Receiver> all;
  std::map<HostPort, std::size_t> by_node;
  std::map<unsigned, std::size_t> by_slot;
};

class Subscriber {
 public:
  Subscriber(ClusterNodes& nodes, const Clock& clock, const CallLimits& limit)
      : m_nodes(nodes), m_clock(clock), m_limit(limit)
  {
  }

  // `channels` belong to one slot.
  Result<Done> listen(unsigned slot, std::span<const std::string_view> channels)
  {
    std::set<HostPort> unreachable;
    for (int redirected = 0; redirected <= most_redirections; ++redirected) {
      ASSIGN_OR_RETURN(const auto node, m_nodes.owner_of(channels.front(), m_limit));
      const auto receiver = receiver_at(node);
      if (!receiver) {
        const bool may_be_replaced = is_passing(receiver.error().code) && unreachable.insert(node).second;
        m_nodes.distrust(node);
        if (may_be_replaced) {
          continue;
        }
        return receiver.error();
      }
      ASSIGN_OR_RETURN(const auto done, listen_at(node, *receiver, channels));
      if (done) {
        m_receivers.by_slot[slot] = *receiver;
        return Done{};
      }
    }
    return too_many_redirections(m_nodes);
  }

  Subscription subscription() &&
  {
    return Subscription(std::move(m_receivers.all), std::move(m_receivers.by_slot), m_clock);
  }

 private:
  // False: the node has redirected the request.
  Result<bool> listen_at(const HostPort& node, std::size_t receiver, std::span<const std::string_view> channels)
  {
    const auto refused = m_receivers.all[receiver].listen(channels, m_limit);
    if (!refused) {
      m_nodes.distrust(node);
      return refused.error();
    }
    if (!*refused) {
      return true;
    }
    const auto redirection = redirection_in(**refused, node);
    if (!redirection) {
      return error_from_reply((*refused)->text, m_receivers.all[receiver].where());
    }
    m_nodes.follow(*redirection);
    return false;
  }

  Result<std::size_t> receiver_at(const HostPort& node)
  {
    if (const auto known = m_receivers.by_node.find(node); known != m_receivers.by_node.end()) {
      return known->second;
    }
    ASSIGN_OR_RETURN(auto connection, m_nodes.open_connection(node, half_of(m_limit, m_clock)));
    m_receivers.all.emplace_back(std::move(connection), ChannelKind::sharded);
    return m_receivers.by_node[node] = m_receivers.all.size() - 1;
  }

  ClusterNodes& m_nodes;
  const Clock& m_clock;
  const CallLimits m_limit;
  Receivers m_receivers;
};

}  // namespace

Cluster::Cluster(Endpoint cluster, const Clock& clock) : m_clock(clock), m_nodes(std::move(cluster), clock) {}

Result<Reply> Cluster::call(std::string_view route_key, std::span<const std::string_view> argv, const CallLimits& whole)
{
  const CallLimits limit{whole.deadline, whole.stop, m_clock.now()};
  auto node = m_nodes.owner_of(route_key, limit);
  bool asking = false;
  Millis pause = first_redirection_pause;
  for (int redirected = 0; node && redirected <= most_redirections;) {
    ASSIGN_OR_RETURN(const auto connection, m_nodes.reach(*node, route_key, limit));
    auto reply = asking ? call_with_asking(*connection, argv, limit) : connection->call(argv, limit);
    if (const auto redirection = reply ? redirection_in(*reply, *node) : std::nullopt) {
      m_nodes.follow(*redirection);
      node = redirection->to;
      asking = redirection->kind == Redirection::Kind::ask;
      ++redirected;
      continue;
    }
    if (!reply || !is_try_again(*reply) || m_clock.now() + pause >= limit.deadline) {
      return final_reply(std::move(reply), *node);
    }
    if (m_clock.sleep_until(m_clock.now() + pause, limit.stop) == Wake::stopped) {
      return interrupted();
    }
    pause = std::min(pause * 2, longest_redirection_pause);
    node = m_nodes.owner_of(route_key, limit);
    asking = false;
  }
  return node ? too_many_redirections(m_nodes) : node.error();
}

Result<Reply> Cluster::follow_up(std::string_view, std::span<const std::string_view> argv, const CallLimits& limit)
{
  Connection* const connection = m_last ? m_nodes.connection_if_open(*m_last) : nullptr;
  return connection != nullptr ? final_reply(connection->call(argv, limit), *m_last) : connection_lost(m_nodes.shown());
}

std::vector<Result<Reply>> Cluster::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  auto batches = batches_by_node(m_nodes, requests, limit);
  if (!batches) {
    return std::vector<Result<Reply>>(requests.size(), batches.error());
  }
  for (Batch& batch : *batches) {
    if (const auto connection = m_nodes.connection_to(batch.node, half_of(limit, m_clock))) {
      send(batch, **connection, requests, limit);
    }
  }
  std::vector<std::optional<Result<Reply>>> answers(requests.size());
  for (Batch& batch : *batches) {
    receive(batch, m_nodes, answers, limit);
  }
  std::vector<Result<Reply>> all;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    all.push_back(answers[i] ? *std::move(answers[i]) : call(requests[i].route_key, argv_of(requests[i]), limit));
  }
  return all;
}

Result<Subscription> Cluster::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  std::map<unsigned, std::vector<std::string_view>> by_slot;
  for (const std::string_view channel : channels) {
    by_slot[slot_of(channel)].push_back(channel);
  }
  Subscriber subscriber(m_nodes, m_clock, limit);
  for (const auto& [slot, names] : by_slot) {
    RETURN_IF_ERROR(subscriber.listen(slot, names));
  }
  return std::move(subscriber).subscription();
}

Result<std::vector<std::string>> Cluster::routes(const CallLimits& limit) { return m_nodes.key_of_each_owner(limit); }

Result<Reply> Cluster::final_reply(Result<Reply> reply, const HostPort& node)
{
  m_last = node;
  auto result = checked(std::move(reply), node, m_nodes);
  if (!result) {
    m_nodes.distrust(node);
  }
  return result;
}

namespace {

bool hides_its_map(const Reply& reply)
{
  return reply.text.starts_with("NOPERM") || reply.text.starts_with("ERR unknown") ||
         reply.text.starts_with("ERR Unknown");
}

}  // namespace

CallLimits half_of(const CallLimits& limit, const Clock& clock) { return share_of(limit, clock.now(), 2); }

ClusterNodes::ClusterNodes(Endpoint cluster, const Clock& clock)
    : m_cluster(std::move(cluster)), m_clock(clock), m_nodes(m_cluster.nodes)
{
}

Result<HostPort> ClusterNodes::owner_of(std::string_view key, const CallLimits& limit)
{
  if (!m_map) {
    RETURN_IF_ERROR(fetch_map(limit));
  }
  const auto owner = key.empty() ? std::nullopt : m_map->owner(slot_of(key));
  return owner.value_or(m_nodes.front());
}

Result<Connection*> ClusterNodes::connection_to(const HostPort& node, const CallLimits& limit)
{
  if (Connection* const known = connection_if_open(node)) {
    return known;
  }
  ASSIGN_OR_RETURN(auto opened, open_connection(node, limit));
  return &m_connections.emplace(node, std::move(opened)).first->second;
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
  RETURN_IF_ERROR(fetch_map(limit));
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
  const auto fetched = in_turn(nodes, m_clock, limit, [&](const HostPort& node, const CallLimits& share) {
    const auto known = fetch_map_from(node, share);
    if (!known && is_passing(known.error().code)) {
      distrust(node);
    }
    return known;
  });
  if (fetched || !is_passing(fetched.error().code)) {
    return fetched;
  }
  const Error& last = fetched.error();
  const bool several = nodes.size() > 1;
  return Error{last.code, (several ? "no node of " + shown() + " answers, the last one: " : "") + last.text};
}

Result<Done> ClusterNodes::fetch_map_from(const HostPort& node, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto connection, connection_to(node, limit));
  constexpr std::array<std::string_view, 2> argv{"CLUSTER", "SLOTS"};
  ASSIGN_OR_RETURN(const auto reply, connection->call(argv, limit));
  if (!reply.is_error() || hides_its_map(reply)) {
    m_map = SlotMap(reply, node);
    for (const HostPort& other : m_map->nodes()) {
      note(other);
    }
    return Done{};
  }
  const std::string where = endpoint_of(node).shown();
  if (reply.text.find("cluster support disabled") != std::string::npos) {
    return Error{ErrorCode::config, where + " is no node of a cluster (use -S " + where + ")"};
  }
  return error_from_reply(reply.text, where);
}

void ClusterNodes::note(const HostPort& node)
{
  if (std::find(m_nodes.begin(), m_nodes.end(), node) == m_nodes.end()) {
    m_nodes.push_back(node);
  }
}

}  // namespace rlock
