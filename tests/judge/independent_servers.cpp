// SPDX-License-Identifier: Apache-2.0
// Servers that know nothing of each other: one, or the members of a quorum. A proxy stands before each.
#include "judge/faults.h"
#include "judge/topologies.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace rlock::judge {
namespace {

class IndependentServers final : public Servers {
 public:
  explicit IndependentServers(std::size_t count)
  {
    for (std::size_t i = 0; i < count; ++i) {
      const test::RedisServer& server = m_servers.emplace_back(fault_options());
      m_proxies.emplace_back(server.socket_path(), Proxy::Listens::unix_socket);
    }
  }

  [[nodiscard]] Words options() const override
  {
    Words words;
    for (const Proxy& proxy : m_proxies) {
      words.insert(words.end(), {"-S", proxy.url()});
    }
    if (m_servers.size() > 1) {
      // With the default, no waiter gets a lock while the machine takes as long for one round of all servers.
      words.insert(words.end(), {"--server-timeout", "2s"});
    }
    return words;
  }

  void ask_each(const std::function<void(const Ask&)>& visit) override
  {
    for (const test::RedisServer& server : m_servers) {
      visit([&server](const Words& command) { return server.try_command(command); });
    }
  }

  std::vector<ServerFault> faults(const Words& keys) override
  {
    // A minority: a quorum bears that. Of one server, the server.
    const std::size_t most = std::max<std::size_t>(1, (m_servers.size() - 1) / 2);
    const auto few = [this, most](Rng& rng, const std::string&) { return some(rng, most); };
    std::vector<ServerFault> all;
    add_faults(all, network_recipes(), few, keys);
    add_faults(all, process_recipes(), few, keys);
    add_faults(all, state_recipes(), few, keys);
    if (m_servers.size() > 1) {
      // A member that lost its data notices, and does not count until the longest lease is over.
      for (ServerFault& fault : all) {
        if (fault.name == "restart-empty" || fault.name == "flushall") {
          fault.excuse = Excuse::none;
        }
      }
      Recipe slow = network_recipes().front();
      slow.name = "net-delay-all";
      all.push_back(make_fault(
          slow, [this](Rng& rng, const std::string&) { return some(rng, m_servers.size()); }, keys));
    }
    return all;
  }

  void settle() override
  {
    for (const ServerTarget& target : targets()) {
      mend(target);
    }
  }

 private:
  std::vector<ServerTarget> targets()
  {
    std::vector<ServerTarget> all;
    for (std::size_t i = 0; i < m_servers.size(); ++i) {
      all.push_back({.server = &m_servers[i], .proxy = &m_proxies[i]});
    }
    return all;
  }

  // From one to `most`, in random order.
  std::vector<ServerTarget> some(Rng& rng, std::size_t most)
  {
    std::vector<ServerTarget> all = targets();
    for (std::size_t i = all.size() - 1; i > 0; --i) {
      std::swap(all[i], all[below(rng, i + 1)]);
    }
    all.resize(1 + below(rng, most));
    return all;
  }

  std::deque<test::RedisServer> m_servers;
  std::deque<Proxy> m_proxies;  // end before their servers
};

}  // namespace

std::unique_ptr<Servers> make_independent_servers(std::size_t count)
{
  return std::make_unique<IndependentServers>(count);
}

}  // namespace rlock::judge
