// SPDX-License-Identifier: Apache-2.0
#include "support/zookeeper_fixture.h"

#include "base/wait.h"
#include "stores/zookeeper/zookeeper_backend.h"
#include "stores/zookeeper/zookeeper_layout.h"
#include "support/give_up.h"
#include "support/skip.h"
#include "support/sockets.h"

#include <algorithm>
#include <fstream>
#include <iostream>

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* jar = "/usr/share/java/zookeeper.jar";
constexpr const char* jar_for_tls = "/usr/share/java/netty-codec.jar";  // Debian's zookeeper.jar does not name it
constexpr const char* java = "/usr/bin/java";

Endpoint endpoint_at(std::uint16_t port)
{
  Endpoint endpoint;
  endpoint.scheme = zookeeper::scheme;
  endpoint.port = port;
  return endpoint;
}

bool zookeeper_listens(std::uint16_t port)
{
  const BootClock clock;
  return static_cast<bool>(
      ByteStream::open(endpoint_at(port), clock, {.deadline = clock.now() + 2s, .stop = StopToken::never()}));
}

using zookeeper::Layout;
using zookeeper::Operation;

const Layout layout("");

// Asks again if a member has just ended the connection or starts.
zookeeper::Answer asked(zookeeper::Client& client, const Operation& operation)
{
  const BootClock clock;
  const Instant end = clock.now() + 20s;
  for (;;) {
    auto answer = client.ask(operation, {.deadline = end, .stop = StopToken::never()});
    if (answer) {
      return *std::move(answer);
    }
    if (clock.now() >= end) {
      give_up(answer.error().text);
    }
    clock.sleep_until(clock.now() + 50ms, StopToken::never());
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

bool has_zookeeper() { return fs::exists(jar) && fs::exists(java); }

std::string zookeeper_word(std::uint16_t port, const std::string& word)
{
  const BootClock clock;
  const CallLimits limit{.deadline = clock.now() + 2s, .stop = StopToken::never()};
  auto stream = ByteStream::open(endpoint_at(port), clock, limit);
  std::string answer;
  if (!stream || !stream->send(word, limit)) {
    return answer;
  }
  while (wait_for(stream->fd(), POLLIN, clock, limit) == Waited::ready &&
         stream->read_into([&](std::string_view bytes) { answer += bytes; })) {
  }
  return answer;
}

ZookeeperServer::ZookeeperServer(ZookeeperOptions options)
    : ClusterServer("zk", options.nodes), m_options(std::move(options))
{
  skip_if(!has_zookeeper(), "no ZooKeeper (install zookeeper)");
  if (m_options.certificate) {  // key and certificate in one file
    std::ofstream(dir() / "tls.pem") << std::ifstream(m_options.certificate->key).rdbuf()
                                     << std::ifstream(m_options.certificate->file).rdbuf();
  }
  for (std::size_t node = 0; node < m_options.nodes; ++node) {
    m_peer_ports.push_back(free_port());
    m_election_ports.push_back(free_port());
    fs::create_directories(directory_of(node) / "data");
    std::ofstream(directory_of(node) / "data/myid") << node + 1;
  }
  for (std::size_t node = 0; node < m_options.nodes; ++node) {
    write_configuration(node);
  }
  ZookeeperServer::start();
}

void ZookeeperServer::write_configuration(std::size_t node)
{
  std::ofstream file(directory_of(node) / "zoo.cfg");
  const std::string secure = m_options.certificate ? "secureC" : "c";
  if (m_options.certificate) {
    file << "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\nssl.clientAuth=none\n";
    const std::string pem = (dir() / "tls.pem").string();
    for (const char* store : {"keyStore", "trustStore"}) {
      file << "ssl." << store << ".location=" << pem << "\nssl." << store << ".type=PEM\n";
    }
  }
  file << "dataDir=" << (directory_of(node) / "data").string() << "\n"
       << secure << "lientPort=" << port_of(node) << "\n"
       << secure << "lientPortAddress=127.0.0.1"
       << "\ntickTime=" << m_options.tick.count() << "\nmaxSessionTimeout=" << m_options.longest_session.count()
       << "\ninitLimit=100\nsyncLimit=25\nadmin.enableServer=false\n4lw.commands.whitelist=srvr,ruok,"
          "cons\nmaxClientCnxns=0\n";
  for (std::size_t other = 0; other < m_options.nodes && m_options.nodes > 1; ++other) {
    std::uint16_t port = m_peer_ports[other];
    if (m_options.relays_peers && other != node) {
      m_ways.push_back({.from = node, .to = other, .relay = std::make_unique<TcpRelay>(port)});
      port = m_ways.back().relay->port();
    }
    file << "server." << other + 1 << "=127.0.0.1:" << port << ":" << m_election_ports[other] << "\n";
  }
}

Words ZookeeperServer::words_of_member(std::size_t node) const
{
  Words words{java, "-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no"};
  if (m_options.longest_request > 0) {
    words.push_back("-Djute.maxbuffer=" + std::to_string(m_options.longest_request));
  }
  words.insert(words.end(),
               {"-cp", std::string(jar) + ":" + jar_for_tls, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                (directory_of(node) / "zoo.cfg").string()});
  return words;
}

void ZookeeperServer::await_members()
{
  for (std::size_t node = 0; node < m_options.nodes; ++node) {
    if (!process_of(node).running()) {
      std::cerr << "ZooKeeper's node " << node << " has ended by itself: " << process_of(node).out()
                << process_of(node).err() << "\n";
      start_member(node);
    }
  }
  ClusterServer::await_members();
}

// A node that starts may accept a connection and refuse it, so a request must have been answered.
bool ZookeeperServer::serves(std::size_t node) const
{
  if (m_options.certificate) {  // only a client that trusts it can ask
    return zookeeper_listens(port_of(node));
  }
  const BootClock clock;
  const auto asked = client(url_at(std::array{port_of(node)}), 10s, clock);
  const auto answer = asked->ask(zookeeper::sync("/"), {.deadline = clock.now() + 2s, .stop = StopToken::never()});
  return answer && answer->is_ok();
}

std::string ZookeeperServer::url(const std::string& chroot, const std::string& login) const
{
  return (m_options.certificate ? "zookeeper+tls://" : "zookeeper://") + login + hosts() + chroot;
}

std::unique_ptr<zookeeper::Client> ZookeeperServer::client(const std::string& url, Millis session_timeout,
                                                           const Clock& clock) const
{
  const auto endpoint = zookeeper::parse_zookeeper_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return std::make_unique<zookeeper::Client>(zookeeper::connection_spec(*endpoint), session_timeout, clock,
                                             std::make_unique<SystemRng>());
}

std::optional<std::size_t> ZookeeperServer::find_leader() const
{
  for (std::size_t node = 0; node < m_options.nodes; ++node) {
    const std::string facts = zookeeper_word(port_of(node), "srvr");
    if (facts.find("Mode: leader") != std::string::npos || facts.find("Mode: standalone") != std::string::npos) {
      return node;
    }
  }
  return std::nullopt;
}

void ZookeeperServer::cut_off_member(std::size_t member)
{
  for (const Way& way : m_ways) {
    if (way.from == member || way.to == member) {
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
  const auto eye = client(url(), 30s, clock);
  asked(*eye, zookeeper::sync(layout.locks()));
  std::vector<std::string> names;
  for (const std::string& child : asked(*eye, zookeeper::get_children(layout.locks())).children) {
    names.push_back(zookeeper::text_of_node(child).value_or(child));
  }
  std::ranges::sort(names);
  eye->close_ahead();
  return names;
}

void ZookeeperServer::delete_locks() const
{
  const BootClock clock;
  const auto eye = client(url(), 30s, clock);
  asked(*eye, zookeeper::sync(layout.locks()));
  delete_below(*eye, layout.locks());
  delete_below(*eye, layout.all_events());
  eye->close_ahead();
}

// No command of ZooKeeper ends a connection. The sessions outlive a restart.
void ZookeeperServer::end_connections()
{
  for (std::size_t node = 0; node < m_options.nodes; ++node) {
    kill_member(node);
    start_member(node);
  }
  await_members();
}

}  // namespace rlock::test
