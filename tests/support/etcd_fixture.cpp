// SPDX-License-Identifier: Apache-2.0
#include "support/etcd_fixture.h"

#include "stores/etcd/etcd_backend.h"
#include "stores/etcd/etcd_layout.h"
#include "support/give_up.h"
#include "support/limits.h"
#include "support/skip.h"
#include "support/sockets.h"

#include <cstdlib>

#include <doctest/doctest.h>
#include <unistd.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

bool is_program(const std::string& name)
{
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (::access((rest.substr(0, end) + "/" + name).c_str(), X_OK) == 0) {
      return true;
    }
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

bool has_etcd() { return is_program("etcd") && is_program("etcdctl") && etcd::libnghttp2(); }

EtcdServer::EtcdServer(EtcdOptions options) : ClusterServer("etcd", options.nodes), m_options(std::move(options))
{
  skip_if(!has_etcd(), "no etcd, etcdctl or libnghttp2 (packaging/install-deps.sh databases)");
  for (std::size_t node = 0; node < m_options.nodes; ++node) {
    m_peer_ports.push_back(free_port());
  }
  if (m_options.authority != nullptr) {
    m_certificate = m_options.authority->sign("IP:127.0.0.1,DNS:localhost");
  }
  if (m_options.relays_peers) {
    m_peers = std::make_unique<EtcdPeers>(m_peer_ports);
  }
  EtcdServer::start();
}

std::string EtcdServer::base_url(std::uint16_t port) const
{
  return (m_certificate ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port);
}

Words EtcdServer::words_of_member(std::size_t node) const
{
  const auto at_port = [](std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); };
  const auto peer = [&](std::size_t each) { return at_port(m_peers ? m_peers->port(each) : m_peer_ports[each]); };
  const auto name = [](std::size_t each) { return "node" + std::to_string(each); };
  std::string cluster;
  for (std::size_t each = 0; each < m_options.nodes; ++each) {
    cluster += (each == 0 ? "" : ",") + name(each) + "=" + peer(each);
  }
  Words words{"etcd",
              "--name=" + name(node),
              "--data-dir=" + (dir() / name(node)).string(),
              "--listen-client-urls=" + base_url(port_of(node)),
              "--advertise-client-urls=" + base_url(port_of(node)),
              "--listen-peer-urls=" + at_port(m_peer_ports[node]),
              "--initial-advertise-peer-urls=" + peer(node),
              "--initial-cluster=" + cluster,
              "--initial-cluster-state=new",
              "--unsafe-no-fsync",
              "--log-level=error",
              "--logger=zap"};
  if (m_certificate) {
    words.insert(words.end(), {"--cert-file=" + m_certificate->file, "--key-file=" + m_certificate->key,
                               "--trusted-ca-file=" + m_options.authority->file(), "--client-cert-auth"});
  }
  words.insert(words.end(), m_options.args.begin(), m_options.args.end());
  return words;
}

// A linearizable read needs a leader.
bool EtcdServer::serves(std::size_t node) const
{
  const BootClock clock;
  etcd::Connection connection(spec(url_of_node(node)), clock, std::make_unique<SystemRng>());
  return static_cast<bool>(connection.range({.key = "k"}, within(1s)));
}

std::string EtcdServer::url(const std::string& prefix, const std::string& login) const
{
  return url_of(ports(), prefix, login);
}

std::string EtcdServer::url_at(std::span<const std::uint16_t> ports) const { return url_of(ports, "app", ""); }

std::string EtcdServer::url_of(std::span<const std::uint16_t> ports, const std::string& prefix,
                               const std::string& login) const
{
  return (m_certificate ? "etcds://" : "etcd://") + login + hosts_at(ports) + "/" + prefix;
}

std::string EtcdServer::url_of_node(std::size_t node) const
{
  return (m_certificate ? "etcds://127.0.0.1:" : "etcd://127.0.0.1:") + std::to_string(port_of(node)) + "/app";
}

etcd::ConnectionSpec EtcdServer::spec(const std::string& url) const
{
  auto endpoint = etcd::parse_etcd_url(url);
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  if (endpoint->tls && m_certificate) {
    endpoint->tls = TlsFiles{
        .authorities = m_options.authority->file(), .certificate = m_certificate->file, .key = m_certificate->key};
  }
  if (!m_root_password.empty() && endpoint->user.empty()) {
    endpoint->user = "root";
    endpoint->password = m_root_password;
  }
  return etcd::connection_spec(*endpoint);
}

std::unique_ptr<record::Backend> EtcdServer::open_backend(const Clock& clock) const
{
  return etcd::open_backend(spec(url()), clock, std::make_unique<SystemRng>());
}

std::vector<std::string> EtcdServer::lock_names() const
{
  const BootClock clock;
  etcd::Connection connection(spec(url()), clock, std::make_unique<SystemRng>());
  const etcd::Layout layout("app");
  etcd::Range all = layout.all(etcd::Kind::lock);
  all.keys_only = true;
  const auto answer = connection.range(all, soon());
  if (!answer) {
    give_up(answer.error().text);
  }
  std::vector<std::string> names;
  for (const etcd::KeyValue& each : answer->keys) {
    names.push_back(each.key.substr(all.key.size()));
  }
  return names;
}

void EtcdServer::delete_locks() const
{
  const BootClock clock;
  etcd::Connection connection(spec(url()), clock, std::make_unique<SystemRng>());
  const etcd::Layout layout("app");
  etcd::Txn txn;
  for (const auto kind : {etcd::Kind::lock, etcd::Kind::held, etcd::Kind::event}) {
    const etcd::Range range = layout.all(kind);
    txn.success.emplace_back(etcd::Delete{.key = range.key, .range_end = range.range_end});
  }
  if (const auto done = connection.txn(txn, soon()); !done) {
    give_up(done.error().text);
  }
}

void EtcdServer::end_connections() { skip("etcd ends no connections when a test wants it"); }

void EtcdServer::cut_off_member(std::size_t node)
{
  const BootClock clock;
  etcd::Connection connection(spec(url_of_node(node)), clock, std::make_unique<SystemRng>());
  const auto status = connection.status(soon());
  if (!status || !m_peers) {
    give_up("this node cannot be cut off");
  }
  m_peers->cut_off(node, status->header.member);
}

void EtcdServer::join_members()
{
  if (m_peers) {
    m_peers->join();
  }
}

std::optional<std::size_t> EtcdServer::find_leader() const
{
  const BootClock clock;
  for (std::size_t node = 0; node < m_options.nodes; ++node) {
    etcd::Connection connection(spec(url_of_node(node)), clock, std::make_unique<SystemRng>());
    const auto status = connection.status(within(1s));
    if (status && status->leader == status->header.member) {
      return node;
    }
  }
  return std::nullopt;
}

std::string EtcdServer::etcdctl(Words words) const
{
  std::string endpoints;
  for (const std::uint16_t port : ports()) {
    endpoints += (endpoints.empty() ? "" : ",") + base_url(port);
  }
  Words argv{"etcdctl", "--endpoints=" + endpoints};
  if (m_certificate) {
    argv.insert(argv.end(), {"--cacert=" + m_options.authority->file(), "--cert=" + m_certificate->file,
                             "--key=" + m_certificate->key});
  }
  if (!m_root_password.empty()) {
    argv.push_back("--user=root:" + m_root_password);
  }
  argv.insert(argv.end(), words.begin(), words.end());
  Process process(std::move(argv), {.env = {{"ETCDCTL_API", "3"}}, .cwd = "/"});
  const Exit end = process.wait(30s);
  REQUIRE_MESSAGE(end == success, process.err());
  return process.out();
}

void EtcdServer::demand_login(const std::string& password)
{
  [[maybe_unused]] std::string out = etcdctl({"user", "add", "root:" + password});
  out = etcdctl({"user", "grant-role", "root", "root"});
  out = etcdctl({"auth", "enable"});
  m_root_password = password;
}

}  // namespace rlock::test
