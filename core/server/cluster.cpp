// SPDX-License-Identifier: Apache-2.0
#include "server/cluster.h"

#include "net/errors.h"
#include "net/wait.h"
#include "server/group.h"
#include "server/slot.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace rlock {
namespace {

constexpr int most_redirections = 8;
constexpr Millis first_pause{5};  // while a slot is being moved; doubles up to the longest
constexpr Millis longest_pause{100};

bool is_try_again(const Reply& reply) { return reply.is_error() && reply.text.starts_with("TRYAGAIN"); }

// ASKING holds for the request behind it alone.
Result<Reply> ask_as_newcomer(Connection& link, std::span<const std::string_view> argv, const CallLimits& limit)
{
  constexpr std::array<std::string_view, 1> asking{"ASKING"};
  for (const auto words : {std::span<const std::string_view>(asking), argv}) {
    if (const auto sent = link.send(words, limit); !sent) {
      return sent.error();
    }
  }
  auto allowed = link.answer(limit);
  if (!allowed) {
    return allowed;
  }
  auto reply = link.answer(limit);
  return reply && allowed->is_error() ? allowed : reply;
}

// A part of the time that is left, so that one node which does not answer leaves some of it for the others.
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

struct Cluster::Batch {
  HostPort node;
  Indexes which;
  Connection* link = nullptr;
  Result<Done> fine = Done{};
};

struct Cluster::Receivers {
  std::vector<Receiver> all;
  std::map<HostPort, std::size_t> at;
  std::map<unsigned, std::size_t> by_slot;
};

Cluster::Cluster(Endpoint cluster, const Clock& clock)
    : m_cluster(std::move(cluster)), m_clock(clock), m_nodes(m_cluster.nodes)
{
}

Result<Reply> Cluster::call(std::string_view route_key, std::span<const std::string_view> argv, const CallLimits& limit)
{
  auto node = owner_of(route_key, limit);
  bool asking = false;
  Millis pause = first_pause;
  for (int redirected = 0; node && redirected <= most_redirections;) {
    const auto link = reach(*node, route_key, limit);
    if (!link) {
      return link.error();
    }
    auto reply = asking ? ask_as_newcomer(**link, argv, limit) : (*link)->call(argv, limit);
    if (!reply) {
      distrust(*node);
      return reply;
    }
    if (const auto redirection = redirection_in(*reply, *node)) {
      follow(*redirection);
      node = redirection->to;
      asking = redirection->kind == Redirection::Kind::ask;
      ++redirected;
      continue;
    }
    if (!is_try_again(*reply) || m_clock.now() + pause >= limit.deadline) {
      auto result = meant(*std::move(reply), *node);
      m_last = *node;
      if (!result) {
        distrust(*node);
      }
      return result;
    }
    if (m_clock.sleep_until(m_clock.now() + pause, limit.stop) == Wake::stopped) {
      return interrupted();
    }
    pause = std::min(pause * 2, longest_pause);
    node = owner_of(route_key, limit);
    asking = false;
  }
  return node ? in_circles() : node.error();
}

Result<Reply> Cluster::follow_up(std::string_view, std::span<const std::string_view> argv, const CallLimits& limit)
{
  const auto link = m_last ? m_links.find(*m_last) : m_links.end();
  if (link == m_links.end()) {
    return cut_off(m_cluster.shown());
  }
  auto reply = link->second.call(argv, limit);
  auto result = reply ? meant(*std::move(reply), *m_last) : std::move(reply);
  if (!result) {
    distrust(*m_last);
  }
  return result;
}

// Who cannot be reached, or sends us elsewhere, is asked alone.
std::vector<Result<Reply>> Cluster::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  auto batches = by_node(requests, limit);
  if (!batches) {
    return std::vector<Result<Reply>>(requests.size(), batches.error());
  }
  for (Batch& batch : *batches) {
    send(batch, requests, limit);
  }
  std::vector<Result<Reply>> answers(requests.size(), Error{ErrorCode::internal, "not asked yet"});
  Indexes alone;
  for (Batch& batch : *batches) {
    receive(batch, answers, alone, limit);
  }
  for (const std::size_t i : alone) {
    const std::vector<std::string_view> argv(requests[i].words.begin(), requests[i].words.end());
    answers[i] = call(requests[i].route_key, argv, limit);
  }
  return answers;
}

Result<std::vector<Cluster::Batch>> Cluster::by_node(std::span<const Request> requests, const CallLimits& limit)
{
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto node = owner_of(requests[i].route_key, limit);
    if (!node) {
      return node.error();
    }
    auto batch = std::find_if(batches.begin(), batches.end(), [&](const Batch& each) { return each.node == *node; });
    if (batch == batches.end()) {
      batch = batches.insert(batches.end(), {.node = *node, .which = {}});
    }
    batch->which.push_back(i);
  }
  return batches;
}

void Cluster::send(Batch& batch, std::span<const Request> requests, const CallLimits& limit)
{
  const auto link = link_to(batch.node, share_of(limit, m_clock, 2));
  if (!link) {
    return;
  }
  batch.link = *link;
  for (const std::size_t i : batch.which) {
    const std::vector<std::string_view> argv(requests[i].words.begin(), requests[i].words.end());
    batch.fine = batch.fine ? batch.link->send(argv, limit) : batch.fine;
  }
}

// After a failure nothing more is read: what was sent by then is unknown, all of it.
void Cluster::receive(Batch& batch, std::vector<Result<Reply>>& answers, Indexes& alone, const CallLimits& limit)
{
  for (const std::size_t i : batch.which) {
    if (batch.link == nullptr) {
      alone.push_back(i);
      continue;
    }
    auto reply = batch.fine ? batch.link->answer(limit) : Result<Reply>(batch.fine.error());
    if (reply && (redirection_in(*reply, batch.node) || is_try_again(*reply))) {
      alone.push_back(i);
      continue;
    }
    batch.fine = reply ? batch.fine : Result<Done>(reply.error());
    answers[i] = reply ? meant(*std::move(reply), batch.node) : reply;
  }
  if (!batch.fine) {
    distrust(batch.node);
  }
}

Result<Subscription> Cluster::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  std::map<unsigned, std::vector<std::string_view>> by_slot;
  for (const std::string_view channel : channels) {
    by_slot[slot_of(channel)].push_back(channel);
  }
  Receivers receivers;
  for (const auto& [slot, names] : by_slot) {
    const auto receiver = hear(receivers, names, limit);
    if (!receiver) {
      return receiver.error();
    }
    receivers.by_slot[slot] = *receiver;
  }
  return Subscription(std::move(receivers.all), std::move(receivers.by_slot), m_clock);
}

// Channels of one slot; which of the receivers hears them.
Result<std::size_t> Cluster::hear(Receivers& receivers, std::span<const std::string_view> channels,
                                  const CallLimits& limit)
{
  std::set<HostPort> gone;
  for (int redirected = 0; redirected <= most_redirections; ++redirected) {
    const auto node = owner_of(channels.front(), limit);
    if (!node) {
      return node.error();
    }
    const auto receiver = receiver_at(receivers, *node, limit);
    if (!receiver) {
      const bool is_news = is_passing(receiver.error().fault) && gone.insert(*node).second;
      distrust(*node);
      if (is_news) {
        continue;
      }
      return receiver.error();
    }
    const auto refused = receivers.all[*receiver].listen(channels, limit);
    if (!refused) {
      distrust(*node);
      return refused.error();
    }
    if (!*refused) {
      return *receiver;
    }
    const auto redirection = redirection_in(**refused, *node);
    if (!redirection) {
      return error_from_reply((*refused)->text, receivers.all[*receiver].where());
    }
    follow(*redirection);
  }
  return in_circles();
}

Result<std::size_t> Cluster::receiver_at(Receivers& receivers, const HostPort& node, const CallLimits& limit)
{
  if (const auto known = receivers.at.find(node); known != receivers.at.end()) {
    return known->second;
  }
  auto connection = Connection::open(server_at(m_cluster, node), m_clock, share_of(limit, m_clock, 2));
  if (!connection) {
    return connection.error();
  }
  receivers.all.emplace_back(*std::move(connection), Hearing::sharded);
  return receivers.at[node] = receivers.all.size() - 1;
}

// The first numbers of which each belongs to another node.
Result<std::vector<std::string>> Cluster::routes(const CallLimits& limit)
{
  if (const auto learnt = learn(limit); !learnt) {
    return learnt.error();
  }
  std::set<HostPort> missing = m_map->owners();
  if (missing.empty()) {
    return Error{ErrorCode::refused,
                 m_nodes.front().host + " does not tell who else is in the cluster (allow CLUSTER SLOTS there)"};
  }
  std::vector<std::string> routes;
  constexpr unsigned enough = 64 * slot_count;  // to meet with every slot
  for (unsigned number = 0; number < enough && !missing.empty(); ++number) {
    const std::string key = std::to_string(number);
    const auto owner = m_map->owner(slot_of(key));
    if (owner && missing.erase(*owner) > 0) {
      routes.push_back(key);
    }
  }
  return routes;
}

void Cluster::forget()
{
  m_links.clear();
  m_map.reset();
}

// As far as is known; anybody where it is not, who then says who it is.
Result<HostPort> Cluster::owner_of(std::string_view route_key, const CallLimits& limit)
{
  if (!m_map) {
    if (const auto learnt = learn(limit); !learnt) {
      return learnt.error();
    }
  }
  const auto owner = route_key.empty() ? std::nullopt : m_map->owner(slot_of(route_key));
  return owner.value_or(m_nodes.front());
}

Result<Done> Cluster::learn(const CallLimits& limit)
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
    if (!is_passing(last->fault)) {
      return *last;
    }
    distrust(node);
  }
  const bool several = nodes.size() > 1;
  return Error{last->fault,
               (several ? "no node of " + m_cluster.shown() + " answers, the last one: " : "") + last->text};
}

Result<ClusterMap> Cluster::ask_for_map(const HostPort& node, const CallLimits& limit)
{
  const auto link = link_to(node, limit);
  if (!link) {
    return link.error();
  }
  constexpr std::array<std::string_view, 2> argv{"CLUSTER", "SLOTS"};
  const auto reply = (*link)->call(argv, limit);
  if (!reply) {
    return reply.error();
  }
  if (!reply->is_error() || hides_its_map(*reply)) {
    return ClusterMap(*reply, node);
  }
  const std::string shown = server_at(m_cluster, node).shown();
  if (reply->text.find("cluster support disabled") != std::string::npos) {
    return Error{ErrorCode::config, shown + " is no node of a cluster (use -S " + shown + ")"};
  }
  return error_from_reply(reply->text, shown);
}

Result<Connection*> Cluster::link_to(const HostPort& node, const CallLimits& limit)
{
  if (const auto known = m_links.find(node); known != m_links.end()) {
    return &known->second;
  }
  auto opened = Connection::open(server_at(m_cluster, node), m_clock, limit);
  if (!opened) {
    return opened.error();
  }
  return &m_links.emplace(node, *std::move(opened)).first->second;
}

// A connection to the node, or to whom has taken over from it: nothing has been sent yet.
Result<Connection*> Cluster::reach(HostPort& node, std::string_view route_key, const CallLimits& limit)
{
  const auto link = link_to(node, share_of(limit, m_clock, 2));
  if (link || !is_passing(link.error().fault)) {
    return link;
  }
  distrust(node);
  const auto successor = owner_of(route_key, limit);
  if (!successor || *successor == node) {
    return link;
  }
  node = *successor;
  return link_to(node, limit);
}

Result<Reply> Cluster::meant(Reply reply, const HostPort& node) const
{
  if (reply.is_error() && !is_unknown_script(reply.text)) {
    return error_from_reply(reply.text, server_at(m_cluster, node).shown());
  }
  return reply;
}

Error Cluster::in_circles() const
{
  return {ErrorCode::unfit, m_cluster.shown() + " sends us round in circles (see CLUSTER NODES there)"};
}

void Cluster::follow(const Redirection& redirection)
{
  note(redirection.to);
  if (m_map && redirection.kind == Redirection::Kind::moved) {
    m_map->moved(redirection.slot, redirection.to);
  }
}

void Cluster::note(const HostPort& node)
{
  if (std::find(m_nodes.begin(), m_nodes.end(), node) == m_nodes.end()) {
    m_nodes.push_back(node);
  }
}

// It has failed us: what it told is asked of another one, and of itself last.
void Cluster::distrust(const HostPort& node)
{
  m_links.erase(node);
  m_map.reset();
  const auto at = std::find(m_nodes.begin(), m_nodes.end(), node);
  if (at != m_nodes.end()) {
    std::rotate(at, at + 1, m_nodes.end());
  }
}

}  // namespace rlock
