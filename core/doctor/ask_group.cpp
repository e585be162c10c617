// SPDX-License-Identifier: Apache-2.0
#include "doctor/ask_group.h"

#include <algorithm>
#include <array>
#include <utility>
#include "base/parallel_query.h"
#include "base/text.h"
#include "redis/codec.h"
#include "redis/connection.h"
#include "redis/sentinel.h"

namespace rlock::doctor {
namespace {

std::vector<HostPort> known_nodes(const Endpoint& cluster, const Facts& facts)
{
  std::vector<HostPort> nodes = cluster.nodes;
  if (facts.cluster && facts.cluster->owners) {
    for (const SlotOwner& owner : *facts.cluster->owners) {
      if (!owner.at.host.empty() && std::find(nodes.begin(), nodes.end(), owner.at) == nodes.end()) {
        nodes.push_back(owner.at);
      }
    }
  }
  return nodes;
}

std::vector<Endpoint> servers_with_tls(const Endpoint& endpoint, const Facts& facts)
{
  std::vector<Endpoint> all;
  if (endpoint.is_cluster()) {
    for (const HostPort& node : known_nodes(endpoint, facts)) {
      all.push_back(server_at(endpoint, node));
    }
  } else if (endpoint.is_sentinel_group()) {
    for (const HostPort& at : endpoint.sentinels.hosts) {
      all.push_back(sentinel_at(endpoint, at));
    }
    for (const NamedMaster& master : facts.sentinels ? facts.sentinels->masters : std::vector<NamedMaster>()) {
      all.push_back(server_at(endpoint, master.at));
    }
  } else {
    all.push_back(endpoint);
  }
  std::erase_if(all, [](const Endpoint& each) { return !each.tls; });
  return all;
}

// The TLS handshake alone shows the certificate.
Endpoint without_login(Endpoint endpoint)
{
  endpoint.user.clear();
  endpoint.password.clear();
  endpoint.password_file.clear();
  endpoint.db = 0;
  endpoint.must_be_master = false;
  return endpoint;
}

}  // namespace

std::vector<CertificateLife> ask_certificates(const Endpoint& endpoint, const Facts& facts, Millis timeout,
                                              const Clock& clock)
{
  const CallLimits limit{clock.now() + timeout, StopToken::never()};
  return parallel_query(
      servers_with_tls(endpoint, facts), clock, limit, [&](const Endpoint& server, const CallLimits& until) {
        const auto connection = Connection::open(without_login(server), clock, until);
        const auto left = connection ? connection->certificate_left() : std::nullopt;
        return CertificateLife{server.shown(), left         ? Result(*left)
                                               : connection ? Error{ErrorCode::internal, "it shows no certificate"}
                                                            : connection.error()};
      });
}

}  // namespace rlock::doctor

namespace rlock::doctor {
namespace {

HostPort address_in(const Reply& node)
{
  const bool complete = node.elements.size() >= 2;
  return complete ? HostPort{node.elements[0].text, static_cast<std::uint16_t>(node.elements[1].integer)} : HostPort{};
}

// Each range of slots: the first slot, the last one, the owner, the replicas. The cluster leaves out nodes that are
// down.
std::vector<SlotOwner> owners_in(const Reply& slots)
{
  std::vector<SlotOwner> owners;
  for (const Reply& range : slots.elements) {
    if (range.elements.size() < 3) {
      continue;
    }
    const HostPort at = address_in(range.elements[2]);
    const auto same = [&](const SlotOwner& each) { return each.at == at; };
    if (std::none_of(owners.begin(), owners.end(), same)) {
      owners.push_back({at, range.elements.size() - 3});
    }
  }
  return owners;
}

}  // namespace

ClusterFacts ask_cluster(Transport& transport, std::string_view route_key, Millis timeout, const Clock& clock)
{
  const auto ask = [&](std::string_view what) {
    return transport.call(route_key, std::array<std::string_view, 2>{"CLUSTER", what},
                          {clock.now() + timeout, StopToken::never()});
  };
  ClusterFacts facts;
  const auto info = ask("INFO");
  facts.info = info ? Result(Fields::of_info(info->text)) : info.error();
  const auto slots = ask("SLOTS");
  facts.owners = slots ? Result(owners_in(*slots)) : slots.error();
  return facts;
}

}  // namespace rlock::doctor

namespace rlock::doctor {
namespace {

CallLimits within(Millis timeout, const Clock& clock) { return {clock.now() + timeout, StopToken::never()}; }

Result<Done> check_quorum_reply(const Result<Reply>& reply, const std::string& where)
{
  if (!reply) {
    return reply.error();
  }
  if (!reply->is_error()) {
    return Done{};
  }
  const bool no_quorum = reply->text.starts_with("NOQUORUM");
  return no_quorum ? Error{ErrorCode::server_not_ready, printable(reply->text)} : error_from_reply(reply->text, where);
}

SentinelView ask(const Endpoint& group, const HostPort& at, const CallLimits& limit, const Clock& clock)
{
  const std::string& name = group.sentinels.master;
  SentinelView view{.where = show(at), .master = {}};
  auto sentinel = Connection::open(sentinel_at(group, at), clock, limit);
  if (!sentinel) {
    view.answered = sentinel.error();
    return view;
  }
  const auto named =
      sentinel->call(std::array<std::string_view, 3>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name}, limit);
  if (!named || named->is_error()) {
    view.answered = named ? error_from_reply(named->text, view.where) : named.error();
    return view;
  }
  view.master = master_address_in(*named);
  if (view.master) {
    view.can_fail_over = check_quorum_reply(
        sentinel->call(std::array<std::string_view, 3>{"SENTINEL", "CKQUORUM", name}, limit), view.where);
  }
  return view;
}

// Each once.
std::vector<HostPort> masters_named_by(const std::vector<SentinelView>& views)
{
  std::vector<HostPort> masters;
  for (const SentinelView& each : views) {
    if (each.master && std::find(masters.begin(), masters.end(), *each.master) == masters.end()) {
      masters.push_back(*each.master);
    }
  }
  return masters;
}

}  // namespace

SentinelFacts ask_sentinels(const Endpoint& group, Millis timeout, const Clock& clock)
{
  auto views =
      parallel_query(group.sentinels.hosts, clock, within(timeout, clock),
                     [&](const HostPort& at, const CallLimits& limit) { return ask(group, at, limit, clock); });
  const auto connect = [&](const HostPort& at, const CallLimits& limit) {
    const auto connection = Connection::open(server_at(group, at), clock, limit);
    return NamedMaster{at, connection ? Result<Done>(Done{}) : connection.error()};
  };
  auto masters = parallel_query(masters_named_by(views), clock, within(timeout, clock), connect);
  return {.views = std::move(views), .masters = std::move(masters)};
}

}  // namespace rlock::doctor
