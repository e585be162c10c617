// SPDX-License-Identifier: Apache-2.0
#include "support/sentinel_group.h"

#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace rlock::test {
namespace {

using namespace std::chrono_literals;

constexpr Millis await_limit{30'000};

// The value of a field in an answer that is a list of names and values.
std::string field(const Reply& fields, const std::string& name)
{
  for (std::size_t i = 0; i + 1 < fields.elements.size(); i += 2) {
    if (fields.elements[i].text == name) {
      return fields.elements[i + 1].text;
    }
  }
  return {};
}

bool says(const RedisServer& server, const std::string& text)
{
  const Reply info = server.command({"INFO", "replication"});
  return info.text.find(text) != std::string::npos;
}

RedisOptions with_tcp(RedisOptions options)
{
  options.tcp = true;
  options.args.insert(options.args.end(), {"--repl-diskless-sync-delay", "0"});
  if (!options.password.empty()) {
    options.args.insert(options.args.end(), {"--masterauth", options.password});
  }
  return options;
}

}  // namespace

SentinelProcess::SentinelProcess(const Options& options)
    : m_dir(make_temp_dir("sentinel")), m_port(options.port), m_password(options.password)
{
  std::ofstream config(m_dir / "sentinel.conf");
  config << "bind 127.0.0.1\nport " << m_port << "\nlogfile sentinel.log\n"
         << "sentinel monitor mymaster 127.0.0.1 " << options.master_port << " " << options.quorum << "\n"
         << "sentinel down-after-milliseconds mymaster " << options.down_after.count() << "\n"
         << "sentinel failover-timeout mymaster 3000\n";
  if (!m_password.empty()) {
    config << "requirepass " << m_password << "\nsentinel sentinel-pass " << m_password << "\n";
  }
  for (const std::string& line : options.lines) {
    config << line << "\n";
  }
  config.close();
  start();
}

void SentinelProcess::start()
{
  m_process.emplace(std::vector<std::string>{server_program(), "sentinel.conf", "--sentinel"},
                    ProcessOptions{.cwd = m_dir, .death_signal = SIGKILL});
  wait_until([&] { return ask(endpoint(), {"PING"}, 1s) || !m_process->running(); }, "the sentinel answers");
  REQUIRE_MESSAGE(m_process->running(), "the sentinel does not start: " << m_process->out());
}

void SentinelProcess::kill_hard()
{
  m_process->signal(SIGKILL);
  m_process->wait();
}

Endpoint SentinelProcess::endpoint() const
{
  Endpoint endpoint;
  endpoint.port = m_port;
  endpoint.password = m_password;
  return endpoint;
}

Reply SentinelProcess::command(const std::vector<std::string>& words) const
{
  auto reply = ask(endpoint(), words, 10s);
  REQUIRE_MESSAGE(reply, reply.error().text);
  return *std::move(reply);
}

std::uint16_t SentinelProcess::master_port() const
{
  const auto reply = ask(endpoint(), {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}, 1s);
  return reply && reply->elements.size() == 2 ? static_cast<std::uint16_t>(std::stoi(reply->elements[1].text)) : 0;
}

SentinelGroup::SentinelGroup(SentinelOptions options)
{
  const RedisOptions each = with_tcp(options.servers);
  const std::uint16_t master_port = servers.emplace_back(each).port();
  for (unsigned i = 0; i < options.replicas; ++i) {
    RedisOptions replica = each;
    replica.args.insert(replica.args.end(), {"--replicaof", "127.0.0.1", std::to_string(master_port)});
    servers.emplace_back(replica);
  }
  wait_until([&] { return says(servers.front(), "connected_slaves:" + std::to_string(options.replicas)); },
             "the replicas follow", await_limit);

  SentinelProcess::Options watches{.master_port = master_port,
                                   .quorum = options.sentinels / 2 + 1,
                                   .down_after = options.down_after,
                                   .password = options.sentinel_password};
  if (!options.servers.password.empty()) {
    watches.lines.push_back("sentinel auth-pass mymaster " + options.servers.password);
  }
  start_sentinels(watches, options.sentinels);
  for (const SentinelProcess& sentinel : sentinels) {  // an Error before Redis 7, which is only slower then
    sentinel.command({"SENTINEL", "DEBUG", "PING-PERIOD", "200"});
    sentinel.command({"SENTINEL", "DEBUG", "TILT-PERIOD",
                      "1000"});  // after a pause of two seconds a sentinel does nothing for that long
    if (!options.let_old_masters_be) {
      sentinel.command({"SENTINEL", "DEBUG", "PUBLISH-PERIOD", "200"});
    }
  }
  const auto knows_all = [&](const SentinelProcess& sentinel) {
    const Reply known = sentinel.command({"SENTINEL", "MASTER", "mymaster"});
    return field(known, "flags") == "master" && field(known, "num-slaves") == std::to_string(options.replicas) &&
           field(known, "num-other-sentinels") == std::to_string(options.sentinels - 1);
  };
  for (const SentinelProcess& sentinel : sentinels) {
    wait_until([&] { return knows_all(sentinel); }, "the sentinels know each other", await_limit);
  }
}

// Without this the sentinels need two seconds to find each other.
void SentinelGroup::start_sentinels(const SentinelProcess::Options& options, unsigned count)
{
  std::vector<SentinelProcess::Options> all(count, options);
  for (unsigned i = 0; i < count; ++i) {
    const std::string id(40, static_cast<char>('a' + i));
    all[i].port = free_port();
    for (unsigned other = 0; other < count; ++other) {
      all[other].lines.push_back(other == i ? "sentinel myid " + id
                                            : "sentinel known-sentinel mymaster 127.0.0.1 " +
                                                  std::to_string(all[i].port) + " " + id);
    }
  }
  for (const SentinelProcess::Options& one : all) {
    sentinels.emplace_back(one);
  }
}

std::string SentinelGroup::url() const
{
  std::string hosts;
  for (const SentinelProcess& sentinel : sentinels) {
    hosts += (hosts.empty() ? "" : ",") + sentinel.where();
  }
  return "redis+sentinel://" + hosts + "/mymaster";
}

std::uint16_t SentinelGroup::master_port() const
{
  std::map<std::uint16_t, std::size_t> votes;
  for (const SentinelProcess& sentinel : sentinels) {
    const std::uint16_t port = sentinel.master_port();
    if (port != 0 && ++votes[port] > sentinels.size() / 2) {
      return port;
    }
  }
  return 0;
}

RedisServer& SentinelGroup::at(std::uint16_t port)
{
  const auto server =
      std::find_if(servers.begin(), servers.end(), [&](const RedisServer& each) { return each.port() == port; });
  REQUIRE(server != servers.end());
  return *server;
}

RedisServer& SentinelGroup::master()
{
  std::uint16_t port = 0;
  wait_until([&] { return (port = master_port()) != 0; }, "most of the sentinels agree", await_limit);
  return at(port);
}

void SentinelGroup::await_master_other_than(std::uint16_t port)
{
  const auto is_there = [&] {
    const std::uint16_t now = master_port();
    return now != 0 && now != port && says(at(now), "role:master");
  };
  wait_until(is_there, "another server is the master", await_limit);
}

void SentinelGroup::await_replicas(std::size_t count)
{
  const auto follow = [&] {
    const auto reply = master().try_command({"INFO", "replication"});
    const std::string info = reply ? as_text(*reply) : "";  // a sentinel may have cut the connection
    std::size_t online = 0;
    for (auto at = info.find("state=online"); at != std::string::npos; at = info.find("state=online", at + 1)) {
      ++online;
    }
    return online >= count;
  };
  wait_until(follow, "the replicas follow the master", await_limit);
}

}  // namespace rlock::test
