// SPDX-License-Identifier: Apache-2.0
#include "support/zookeeper_fixture.h"

#include "base/wait.h"
#include "support/give_up.h"
#include "support/redis_fixture.h"
#include "support/skip.h"
#include "support/sockets.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <array>
#include <csignal>
#include <fstream>
#include <iostream>

#include <arpa/inet.h>
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

ZookeeperNodes::ZookeeperNodes(ZookeeperOptions options) : m_options(std::move(options))
{
  if (!has_zookeeper()) {
    skip("no ZooKeeper (install zookeeper)");
  }
  const fs::path dir = make_temp_dir("zookeeper");
  if (m_options.certificate) {  // key and certificate in one file
    std::ofstream(dir / "tls.pem") << std::ifstream(m_options.certificate->key).rdbuf()
                                   << std::ifstream(m_options.certificate->file).rdbuf();
  }
  for (int node = 1; node <= m_options.nodes; ++node) {
    m_nodes.push_back({.dir = dir / std::to_string(node),
                       .port = free_port(),
                       .peer_port = free_port(),
                       .election_port = free_port()});
    fs::create_directories(m_nodes.back().dir / "data");
    std::ofstream(m_nodes.back().dir / "data/myid") << node;
  }
  for (int node = 1; node <= m_options.nodes; ++node) {
    write_configuration(node);
    start(node);
  }
  wait_until_answers();
}

void ZookeeperNodes::write_configuration(int node) const
{
  const Node& own = m_nodes[static_cast<std::size_t>(node - 1)];
  std::ofstream file(own.dir / "zoo.cfg");
  const std::string secure = m_options.certificate ? "secureC" : "c";
  if (m_options.certificate) {
    file << "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\nssl.clientAuth=none\n";
    const std::string pem = (own.dir.parent_path() / "tls.pem").string();
    for (const char* store : {"keyStore", "trustStore"}) {
      file << "ssl." << store << ".location=" << pem << "\nssl." << store << ".type=PEM\n";
    }
  }
  file << "dataDir=" << (own.dir / "data").string() << "\n"
       << secure << "lientPort=" << own.port << "\n"
       << secure << "lientPortAddress=127.0.0.1"
       << "\ntickTime=" << m_options.tick.count() << "\nmaxSessionTimeout=" << m_options.longest_session.count()
       << "\ninitLimit=100\nsyncLimit=25\nadmin.enableServer=false\n4lw.commands.whitelist=srvr,ruok,"
          "cons\nmaxClientCnxns=0\n";
  for (int other = 1; other <= count() && count() > 1; ++other) {
    const Node& peer = m_nodes[static_cast<std::size_t>(other - 1)];
    const bool has_relay = m_options.peer_port && other != node;
    const std::uint16_t port = has_relay ? m_options.peer_port(node, other, peer.peer_port) : peer.peer_port;
    file << "server." << other << "=127.0.0.1:" << port << ":" << peer.election_port << "\n";
  }
}

void ZookeeperNodes::start(int node)
{
  Node& own = m_nodes[static_cast<std::size_t>(node - 1)];
  Words words{java, "-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no"};
  if (m_options.longest_request > 0) {
    words.push_back("-Djute.maxbuffer=" + std::to_string(m_options.longest_request));
  }
  words.insert(words.end(), {"-cp", std::string(jar) + ":" + jar_for_tls,
                             "org.apache.zookeeper.server.quorum.QuorumPeerMain", (own.dir / "zoo.cfg").string()});
  own.process = std::make_unique<Process>(words, ProcessOptions{.cwd = own.dir, .new_session = true});
}

void ZookeeperNodes::start_ended()
{
  for (int node = 1; node <= count(); ++node) {
    Process& process = *m_nodes[static_cast<std::size_t>(node - 1)].process;
    if (!process.running()) {
      std::cerr << "ZooKeeper's node " << node << " has ended by itself: " << process.out() << process.err() << "\n";
      start(node);
    }
  }
}

// A node that starts may accept a connection and refuse it, so a request must have been answered.
void ZookeeperNodes::wait_until_answers()
{
  const BootClock clock;
  for (int node = 1; node <= count(); ++node) {
    const auto& own = m_nodes[static_cast<std::size_t>(node - 1)];
    wait_until(
        [&] {
          REQUIRE_MESSAGE(own.process->running(), own.process->err());
          if (m_options.certificate) {  // only a client that trusts it can ask
            return zookeeper_listens(own.port);
          }
          const auto asked = client(url_of(node), 10s, clock);
          const auto answer =
              asked->ask(zookeeper::sync("/"), {.deadline = clock.now() + 2s, .stop = StopToken::never()});
          return answer && answer->is_ok();
        },
        "ZooKeeper answers");
  }
}

std::string ZookeeperNodes::hosts() const
{
  std::string all;
  for (const Node& node : m_nodes) {
    all += (all.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(node.port));
  }
  return all;
}

std::string ZookeeperNodes::url(const std::string& chroot, const std::string& login) const
{
  return scheme() + login + hosts() + chroot;
}

std::string ZookeeperNodes::url_of(int node) const
{
  return scheme() + "127.0.0.1:" + std::to_string(m_nodes[static_cast<std::size_t>(node - 1)].port);
}

std::unique_ptr<zookeeper::Client> ZookeeperNodes::client(const std::string& url, Millis session_timeout,
                                                          const Clock& clock) const
{
  const auto endpoint = zookeeper::parse_zookeeper_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return std::make_unique<zookeeper::Client>(zookeeper::connection_spec(*endpoint), session_timeout, clock,
                                             std::make_unique<SystemRng>());
}

int ZookeeperNodes::leader() const
{
  for (int node = 1; node <= count(); ++node) {
    const std::string facts = zookeeper_word(m_nodes[static_cast<std::size_t>(node - 1)].port, "srvr");
    if (facts.find("Mode: leader") != std::string::npos || facts.find("Mode: standalone") != std::string::npos) {
      return node;
    }
  }
  return 0;
}

void ZookeeperNodes::kill(int node)
{
  Process& process = *m_nodes[static_cast<std::size_t>(node - 1)].process;
  process.signal(SIGKILL);
  process.wait();
}

void ZookeeperNodes::stop(int node) const { stop_process(m_nodes[static_cast<std::size_t>(node - 1)].process->pid()); }

void ZookeeperNodes::resume(int node) const { m_nodes[static_cast<std::size_t>(node - 1)].process->signal(SIGCONT); }

}  // namespace rlock::test
