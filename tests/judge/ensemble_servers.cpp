// SPDX-License-Identifier: Apache-2.0
// One member or three of etcd or ZooKeeper, with a proxy before each. Members crash, stand still, are cut off from the others, and
// another one becomes the leader. All of them together do so as well, and lose their records.
#include "judge/faults.h"
#include "judge/topologies.h"
#include "support/database_topology.h"
#include "support/wait_until.h"

#include <deque>
#include <stdexcept>
#include <thread>
#include <utility>

namespace rlock::judge {
namespace {

using namespace std::chrono_literals;

// The longest time in which the members that are left choose a leader on a busy machine.
constexpr Millis longest_election = 30s;

class EnsembleServers final : public Servers {
 public:
  EnsembleServers(std::string name, std::shared_ptr<test::DatabaseServer> server)
      : m_name(std::move(name)),
        m_server(std::move(server)),
        m_members(*m_server->members()),
        m_store(test::database_topology(m_name, m_server))
  {
    for (std::size_t member = 0; member < m_members.number_of_members(); ++member) {
      m_proxies.emplace_back(m_members.port_of(member));
    }
  }

  [[nodiscard]] Words options() const override
  {
    std::vector<std::uint16_t> ports;
    for (const Proxy& proxy : m_proxies) {
      ports.push_back(proxy.port());
    }
    return {"-S", m_members.url_at(ports)};
  }

  void ask_each(const std::function<void(const Ask&)>& visit) override
  {
    visit([this](const Words& command) {
      auto answer = m_store->answer(command);
      return answer ? *std::move(answer)
                    : Result<Reply>(Error{ErrorCode::internal, m_name + " has no " + command.front()});
    });
  }

  std::vector<ServerFault> faults(const Words& keys) override
  {
    std::vector<ServerFault> all;
    add_faults(
        all, network_recipes(), [this](Rng& rng, const std::string&) { return std::vector{target(some_member(rng))}; },
        keys);
    add_faults_of_all(all);
    if (m_proxies.size() > 1) {
      add_faults_of_member(all);
    }
    return all;
  }

  void settle() override
  {
    for (Proxy& proxy : m_proxies) {
      proxy.end();
    }
    m_members.join_members();
    m_server->resume();
    for (const std::size_t member : std::exchange(m_killed, {})) {
      m_members.start_member(member);
    }
    m_members.await_members();
    const auto ping = [this] {
      const auto answer = m_store->answer({"PING"});
      return answer && *answer;
    };
    if (!ping() && !ping()) {  // the first one finds that its connection is gone
      throw std::runtime_error(m_name + " does not answer");
    }
  }

 private:
  ServerTarget target(std::size_t member) { return {.server = nullptr, .proxy = &m_proxies[member]}; }
  std::size_t some_member(Rng& rng) { return below(rng, m_proxies.size()); }

  void kill(std::size_t member)
  {
    m_killed.push_back(member);
    m_members.kill_member(member);
  }
  void start_killed()
  {
    for (const std::size_t member : std::exchange(m_killed, {})) {
      m_members.start_member(member);
    }
    m_members.await_members();
  }

  void add_faults_of_all(std::vector<ServerFault>& all)
  {
    all.push_back(guarded_fault("crash", Excuse::none, [this](Rng& rng) {
      for (std::size_t member = 0; member < m_proxies.size(); ++member) {
        kill(member);
      }
      std::this_thread::sleep_for(Millis(below(rng, 1500)));
      start_killed();
      return true;
    }));
    all.push_back(guarded_fault("pause", Excuse::none, [this](Rng& rng) {
      m_server->stop();
      std::this_thread::sleep_for(Millis(100 + below(rng, 4000)));
      m_server->resume();
      return true;
    }));
    all.push_back(guarded_fault("connections-ended", Excuse::none, [this](Rng&) {
      std::uint64_t ended = 0;
      for (Proxy& proxy : m_proxies) {
        proxy.begin({.harm = Harm::cut});
        ended += proxy.end();
      }
      return ended > 0;
    }));
    all.push_back(guarded_fault("records-deleted", Excuse::data_loss,
                                [this](Rng&) { return static_cast<bool>(*m_store->answer({"FLUSHALL"})); }));
  }

  void add_faults_of_member(std::vector<ServerFault>& all)
  {
    all.push_back(guarded_fault("member-killed", Excuse::none, [this](Rng& rng) {
      kill(some_member(rng));
      std::this_thread::sleep_for(some_time(rng));
      start_killed();
      return true;
    }));
    all.push_back(guarded_fault("member-stopped", Excuse::none, [this](Rng& rng) {
      const std::size_t member = some_member(rng);
      m_members.stop_member(member);
      std::this_thread::sleep_for(some_time(rng));
      m_members.resume_member(member);
      return true;
    }));
    all.push_back(guarded_fault("member-cut-off", Excuse::none, [this](Rng& rng) {
      m_members.cut_off_member(some_member(rng));
      std::this_thread::sleep_for(some_time(rng));
      m_members.join_members();
      return true;
    }));
    // The old leader goes on where it was, and does not know yet that there is another one.
    all.push_back(guarded_fault("leader-changed", Excuse::none, [this](Rng&) {
      const auto old = m_members.find_leader();
      if (!old) {
        return false;
      }
      m_members.stop_member(*old);
      const auto has_other = [&] { return m_members.find_leader().value_or(*old) != *old; };
      test::wait_until(has_other, "another member leads", longest_election);
      m_members.resume_member(*old);
      return true;
    }));
  }

  std::string m_name;
  std::shared_ptr<test::DatabaseServer> m_server;
  test::DatabaseMembers& m_members;
  std::shared_ptr<test::Topology> m_store;
  std::vector<std::size_t> m_killed;
  std::deque<Proxy> m_proxies;  // end before the server
};

}  // namespace

std::unique_ptr<Servers> make_etcd_servers(std::size_t members)
{
  return std::make_unique<EnsembleServers>(
      "etcd", std::make_shared<test::EtcdServer>(test::EtcdOptions{.nodes = members, .relays_peers = members > 1}));
}

std::unique_ptr<Servers> make_zookeeper_servers(std::size_t members)
{
  return std::make_unique<EnsembleServers>("zookeeper", std::make_shared<test::ZookeeperServer>(test::ZookeeperOptions{
                                                            .nodes = members, .relays_peers = members > 1}));
}

}  // namespace rlock::judge
