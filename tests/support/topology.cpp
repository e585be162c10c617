// SPDX-License-Identifier: Apache-2.0
#include "support/topology.h"

#include "support/crowd.h"

#include "support/acl_fixture.h"
#include "support/certificates.h"
#include "support/database_topology.h"
#include "support/presences.h"
#include "support/redis_fixture.h"
#include "support/sentinel_group.h"
#include "support/skip.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>
#include <optional>
#include <vector>

namespace rlock::test {
namespace {

struct NamedTopology {
  const char* name;
  TopologyKind kind;
};
constexpr NamedTopology topology_names[] = {{"unix", TopologyKind::unix_socket},  {"tcp", TopologyKind::tcp},
                                            {"tls", TopologyKind::tls},           {"acl", TopologyKind::acl},
                                            {"sentinel", TopologyKind::sentinel}, {"cluster", TopologyKind::cluster},
                                            {"quorum3", TopologyKind::quorum3},   {"quorum5", TopologyKind::quorum5}};

const char* requested_name()
{
  const char* name = std::getenv("RLOCK_TEST_ON");
  return name == nullptr || *name == '\0' ? "unix" : name;
}

// The row of `databases`, or its end.
const DatabaseRow* requested_database()
{
  return std::ranges::find(databases, std::string_view(requested_name()), &DatabaseRow::name);
}

// One authority for all servers of a test case; its files are removed with the case.
std::optional<Authority> authority_of_case;

bool has_authority() { return authority_of_case && std::filesystem::exists(authority_of_case->file()); }

const Authority& authority()
{
  if (!has_authority()) {
    authority_of_case.reset();  // its openssl processes must not have an authority in their environment
    authority_of_case.emplace();
  }
  return *authority_of_case;
}

std::vector<std::string> user_urls;  // URLs, with the password, of the running servers

const std::vector<std::string>& user_arguments()
{
  static const std::vector<std::string> words = [] {
    std::vector<std::string> line = acl_line("k");
    line.erase(line.begin(), line.begin() + 2);  // ACL SETUSER
    line.insert(line.begin(), "--user");
    // Test cases use all kinds of names, with tags and odd bytes. The tests of `acl` cover the key patterns.
    std::erase_if(line, [](const std::string& word) { return word[0] == '~' || word[0] == '&'; });
    line.insert(line.end(), {"~*", "&*", ">secret"});
    return line;
  }();
  return words;
}

class TcpTopology final : public Topology {
 public:
  explicit TcpTopology(const RedisServer& server) : m_url(server.tcp_url()) {}
  [[nodiscard]] std::string url() const override { return m_url; }

 private:
  const std::string m_url;
};

class AclTopology final : public Topology {
 public:
  explicit AclTopology(const RedisServer& server) : m_path(server.socket_path())
  {
    user_urls.push_back("unix://shop:secret@" + m_path);
  }
  ~AclTopology() override { std::erase(user_urls, "unix://shop:secret@" + m_path); }
  AclTopology(const AclTopology&) = delete;
  AclTopology& operator=(const AclTopology&) = delete;
  [[nodiscard]] std::string url() const override { return "unix://" + m_path; }

 private:
  const std::string m_path;
};

class SentinelTopology final : public Topology {
 public:
  explicit SentinelTopology(const RedisServer& server)
      : m_sentinel({.master_port = server.port(), .quorum = 9, .down_after = std::chrono::hours(1), .password = ""})
  {
  }
  [[nodiscard]] std::string url() const override { return "redis+sentinel://" + m_sentinel.where() + "/mymaster"; }

 private:
  SentinelProcess m_sentinel;
};

// A single node has no other node to agree with, but it waits for two seconds before it serves.
class ClusterTopology final : public Topology {
 public:
  explicit ClusterTopology(const RedisServer& server)
      : m_url("redis+cluster://127.0.0.1:" + std::to_string(server.port()))
  {
    server.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    started(server);
  }
  [[nodiscard]] std::string url() const override { return m_url; }
  void started(const RedisServer& server) override
  {
    const auto serves = [&] {
      return as_text(server.command({"CLUSTER", "INFO"})).find("cluster_state:ok") != std::string::npos;
    };
    wait_until(serves, "the cluster serves all slots");
  }
  // Channels have slots as keys do, so subscribers are counted per slot.
  [[nodiscard]] std::vector<std::string> translated(std::vector<std::string> words) const override
  {
    if (words.front() == "PUBSUB") {
      words[1].insert(0, "SHARD");
    }
    return words;
  }

 private:
  const std::string m_url;
};

class QuorumTopology final : public Topology {
 public:
  QuorumTopology(const RedisServer& server, RedisOptions options, std::size_t count)
      : m_url("unix://" + server.socket_path().string())
  {
    options.alone = true;
    while (m_others.size() + 1 < count) {
      m_url += " " + m_others.emplace_back(options).url();
    }
  }
  [[nodiscard]] std::string url() const override { return m_url; }
  void for_other_servers(const std::function<void(RedisServer&)>& act) override
  {
    std::for_each(m_others.begin(), m_others.end(), act);
  }

 private:
  std::string m_url;
  std::deque<RedisServer> m_others;
};

}  // namespace

TopologyKind topology_kind()
{
  const std::string name = requested_name();
  if (requested_database() != databases.end()) {
    return TopologyKind::database;
  }
  const auto* const known = std::find_if(std::begin(topology_names), std::end(topology_names),
                                         [&](const NamedTopology& one) { return one.name == name; });
  REQUIRE_MESSAGE(known != std::end(topology_names), "RLOCK_TEST_ON names no kind of server: " << name);
  return known->kind;
}

int crowd_of(int usual)
{
  const bool is_ferretdb = std::string_view(requested_name()) == "mongo" && std::getenv("RLOCK_TEST_MONGOD") == nullptr;
  constexpr int part = 8;
  return is_ferretdb ? (usual + part - 1) / part : usual;
}

bool ends_holds_with_clients()
{
  const DatabaseRow* const database = requested_database();
  return database != databases.end() && database->has_presences;
}

bool far_waiters_may_sleep() { return topology_kind() == TopologyKind::database && !ends_holds_with_clients(); }

bool is_quorum_topology()
{
  return topology_kind() == TopologyKind::quorum3 || topology_kind() == TopologyKind::quorum5;
}

void skip_on(std::initializer_list<TopologyKind> kinds, const std::string& why)
{
  skip_if(std::find(kinds.begin(), kinds.end(), topology_kind()) != kinds.end(),
          std::string("on ") + requested_name() + ", " + why);
}

void skip_on_quorum(const std::string& why) { skip_on({TopologyKind::quorum3, TopologyKind::quorum5}, why); }

void skip_on_databases(const std::string& why) { skip_on({TopologyKind::database}, why); }

std::map<std::string, std::string> topology_environment()
{
  if (has_authority()) {
    return {{"RLOCK_CACERT", authority_of_case->file()}};
  }
  std::string urls;
  for (const std::string& url : user_urls) {
    urls += (urls.empty() ? "" : " ") + url;
  }
  return urls.empty() ? std::map<std::string, std::string>{} : std::map<std::string, std::string>{{"REDIS_URL", urls}};
}

bool uses_topology(const RedisOptions& options)
{
  return topology_kind() != TopologyKind::unix_socket && !options.alone && !options.tcp && !options.cluster &&
         !options.tls && options.password.empty();
}

RedisOptions topology_options(RedisOptions options)
{
  switch (topology_kind()) {
    case TopologyKind::tls: options.tls = authority().sign("IP:127.0.0.1"); [[fallthrough]];
    case TopologyKind::tcp:
    case TopologyKind::sentinel: options.tcp = true; break;
    case TopologyKind::cluster: options.tcp = options.cluster = true; break;
    case TopologyKind::acl:
      options.args.insert(options.args.end(), user_arguments().begin(), user_arguments().end());
      options.password = "operator";
      break;
    case TopologyKind::unix_socket:
    case TopologyKind::quorum3:
    case TopologyKind::quorum5:
    case TopologyKind::database: break;
  }
  return options;
}

std::shared_ptr<Topology> make_topology(const RedisServer& server, const RedisOptions& options)
{
  switch (topology_kind()) {
    case TopologyKind::tcp:
    case TopologyKind::tls: return std::make_shared<TcpTopology>(server);
    case TopologyKind::acl: return std::make_shared<AclTopology>(server);
    case TopologyKind::sentinel: return std::make_shared<SentinelTopology>(server);
    case TopologyKind::cluster: return std::make_shared<ClusterTopology>(server);
    case TopologyKind::quorum3: return std::make_shared<QuorumTopology>(server, options, 3);
    case TopologyKind::quorum5: return std::make_shared<QuorumTopology>(server, options, 5);
    case TopologyKind::database: return database_topology(*requested_database(), options);
    case TopologyKind::unix_socket: break;
  }
  return nullptr;
}

}  // namespace rlock::test
