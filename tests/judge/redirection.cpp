// SPDX-License-Identifier: Apache-2.0
#include "judge/redirection.h"

#include "support/paths.h"

#include <algorithm>

namespace rlock::judge {

Redirection::Redirection(std::deque<test::RedisServer>& servers) : m_servers(servers)
{
  for (const test::RedisServer& server : m_servers) {
    m_proxies.emplace_back(server.socket_path(), Proxy::Listens::tcp);
  }
}

std::map<std::string, std::string> Redirection::environment() const
{
  std::string pairs;
  for (std::size_t i = 0; i < m_servers.size(); ++i) {
    pairs += (i == 0 ? "" : " ") + std::to_string(m_servers[i].port()) + "=" + std::to_string(m_proxies[i].port());
  }
  return {{"LD_PRELOAD", RLOCK_PRELOAD_REDIRECT}, {"RLOCK_TEST_REDIRECT", pairs}};
}

std::vector<ServerTarget> Redirection::targets()
{
  std::vector<ServerTarget> all;
  for (std::size_t i = 0; i < m_servers.size(); ++i) {
    all.push_back({.server = &m_servers[i], .proxy = &m_proxies[i]});
  }
  return all;
}

ServerTarget Redirection::of(test::RedisServer& server)
{
  const std::vector<ServerTarget> all = targets();
  return *std::find_if(all.begin(), all.end(), [&](const ServerTarget& target) { return target.server == &server; });
}

void Redirection::ask_each_master(const std::function<void(const Ask&)>& visit) const
{
  for (const test::RedisServer& server : m_servers) {
    const auto role = server.try_command({"ROLE"});
    if (role && !role->elements.empty() && role->elements[0].text == "master") {
      visit([&server](const Words& command) { return server.try_command(command); });
    }
  }
}

}  // namespace rlock::judge
