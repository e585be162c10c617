// SPDX-License-Identifier: Apache-2.0
#include "support/zookeeper_server.h"

#include "stores/zookeeper/zookeeper_backend.h"
#include "stores/zookeeper/zookeeper_layout.h"
#include "support/give_up.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace rlock::test {
namespace {

using zookeeper::Code;
using zookeeper::Layout;
using zookeeper::Operation;

const Layout layout("/locks");

// Asks again if a member has just ended the connection or starts.
zookeeper::Answer asked(zookeeper::Client& client, const Operation& operation)
{
  const BootClock clock;
  const Instant end = clock.now() + std::chrono::seconds(20);
  for (;;) {
    auto answer = client.ask(operation, {.deadline = end, .stop = StopToken::never()});
    if (answer) {
      return *std::move(answer);
    }
    if (clock.now() >= end) {
      give_up(answer.error().text);
    }
    clock.sleep_until(clock.now() + Millis(50), StopToken::never());
  }
}

void delete_below(zookeeper::Client& client, const std::string& path)
{
  for (const std::string& child : asked(client, zookeeper::get_children(path)).children) {
    delete_below(client, path + "/" + child);
    asked(client, zookeeper::remove(path + "/" + child, zookeeper::any_version));
  }
}

}  // namespace

ZookeeperServer::ZookeeperServer(int nodes, bool relays_peers)
    : DatabaseServer("zk", ""), m_nodes(options(nodes, relays_peers))
{
}

ZookeeperOptions ZookeeperServer::options(int nodes, bool relays_peers)
{
  ZookeeperOptions options{.nodes = nodes};
  if (relays_peers) {
    options.peer_port = [this](int from, int to, std::uint16_t port) {
      return m_ways.emplace_back(Way{.from = from, .to = to, .relay = std::make_unique<TcpRelay>(port)}).relay->port();
    };
  }
  return options;
}

std::string ZookeeperServer::url_at(std::span<const std::uint16_t> ports) const
{
  std::string hosts;
  for (const std::uint16_t port : ports) {
    hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
  }
  return "zookeeper://" + hosts + "/locks";
}

std::optional<std::size_t> ZookeeperServer::find_leader() const
{
  const int node = m_nodes.leader();
  return node == 0 ? std::nullopt : std::optional(static_cast<std::size_t>(node) - 1);
}

void ZookeeperServer::cut_off_member(std::size_t member)
{
  for (const Way& way : m_ways) {
    if (way.from == node_of(member) || way.to == node_of(member)) {
      way.relay->freeze();
    }
  }
}

void ZookeeperServer::join_members()
{
  for (const Way& way : m_ways) {
    way.relay->thaw();
  }
}

std::unique_ptr<record::Backend> ZookeeperServer::open_backend(const Clock& clock) const
{
  const auto endpoint = zookeeper::parse_zookeeper_url(url());
  REQUIRE(endpoint);
  return zookeeper::open_backend(zookeeper::connection_spec(*endpoint), clock, std::make_unique<SystemRng>());
}

std::vector<std::string> ZookeeperServer::lock_names() const
{
  const BootClock clock;
  const auto client = m_nodes.client(m_nodes.url(), std::chrono::seconds(30), clock);
  asked(*client, zookeeper::sync(layout.locks()));
  std::vector<std::string> names;
  for (const std::string& child : asked(*client, zookeeper::get_children(layout.locks())).children) {
    names.push_back(zookeeper::text_of_node(child).value_or(child));
  }
  std::ranges::sort(names);
  client->close_ahead();
  return names;
}

void ZookeeperServer::delete_locks() const
{
  const BootClock clock;
  const auto client = m_nodes.client(m_nodes.url(), std::chrono::seconds(30), clock);
  asked(*client, zookeeper::sync(layout.locks()));
  delete_below(*client, layout.locks());
  delete_below(*client, layout.all_events());
  client->close_ahead();
}

// No command of ZooKeeper ends a connection. The sessions outlive a restart.
void ZookeeperServer::end_connections() const
{
  for (int node = 1; node <= m_nodes.count(); ++node) {
    m_nodes.kill(node);
    m_nodes.start(node);
  }
  m_nodes.wait_until_answers();
}

void ZookeeperServer::start()
{
  for (int node = 1; node <= m_nodes.count(); ++node) {
    m_nodes.start(node);
  }
  m_nodes.wait_until_answers();
  m_is_there = true;
}

void ZookeeperServer::kill()
{
  for (int node = 1; node <= m_nodes.count(); ++node) {
    m_nodes.kill(node);
  }
  m_is_there = false;
}

void ZookeeperServer::stop()
{
  for (int node = 1; node <= m_nodes.count(); ++node) {
    m_nodes.stop(node);
  }
}

void ZookeeperServer::resume()
{
  for (int node = 1; node <= m_nodes.count(); ++node) {
    m_nodes.resume(node);
  }
}

}  // namespace rlock::test
