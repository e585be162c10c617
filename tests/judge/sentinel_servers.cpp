// SPDX-License-Identifier: Apache-2.0
// A master, two replicas and three sentinels; with `--sync 1` or without. Acknowledged writes can be lost only in a
// fail-over, so other faults are too short for one: the master is away for less than down_after.
#include "judge/redirection.h"
#include "judge/topologies.h"

#include "support/sentinel_group.h"
#include "support/wait_until.h"

#include <chrono>
#include <thread>

namespace rlock::judge {
namespace {

using namespace std::chrono_literals;

constexpr Millis down_after{3000};  // of the sentinels with a silent server
constexpr std::size_t replicas = 2;

class SentinelServers final : public Servers {
 public:
  explicit SentinelServers(bool sync)
      : m_sync(sync),
        m_group({.replicas = replicas, .down_after = down_after, .servers = fault_options()}),
        m_ways(m_group.servers)
  {
    m_group.await_replicas(replicas);
  }

  [[nodiscard]] Words options() const override
  {
    Words words{"-S", m_group.url()};
    if (m_sync) {
      words.insert(words.end(), {"--sync", "1"});
    }
    return words;
  }
  [[nodiscard]] std::map<std::string, std::string> environment() const override { return m_ways.environment(); }
  void ask_each(const std::function<void(const Ask&)>& visit) override { m_ways.ask_each_master(visit); }

  std::vector<ServerFault> faults(const Words& keys) override
  {
    std::vector<ServerFault> all;
    const auto master = [this](Rng&, const std::string&) { return std::vector{m_ways.of(m_group.master())}; };
    add_faults(all, network_recipes(), master, keys);
    add_faults(all, state_recipes(), master, keys);
    step_clocks_together(all, m_group.servers);
    add_away(all, {.master = [this](Rng&) { return &m_group.master(); },
                   .replica = [this](Rng& rng) { return &replica(rng); },
                   .await_master =
                       [this](const test::RedisServer& restarted) {
                         be_master(restarted);
                         m_group.await_replicas(replicas);
                       },
                   .await_replica = [this](const test::RedisServer&) { m_group.await_replicas(replicas); },
                   .fail_over_after = down_after});
    all.push_back(guarded_fault("pause-sentinel", Excuse::none, [this](Rng& rng) {
      test::SentinelProcess& sentinel = m_group.sentinels[below(rng, m_group.sentinels.size())];
      sentinel.stop_signal();
      std::this_thread::sleep_for(some_time(rng));
      sentinel.cont();
      return true;
    }));
    add_fail_overs(all);
    watch_fail_overs(all, [this] { return std::to_string(m_group.master().port()); },
                     {"fail-over-kill", "fail-over-stop", "fail-over-command", "fail-over-unreachable"});
    return all;
  }

  void settle() override
  {
    for (const ServerTarget& target : m_ways.targets()) {
      mend(target);
    }
    for (test::SentinelProcess& sentinel : m_group.sentinels) {
      sentinel.cont();
    }
    be_master(m_group.master());
    m_group.await_replicas(replicas);
  }

 private:
  // Where a server was promoted, its command line still says that it is a replica.
  static void be_master(const test::RedisServer& server) { server.command({"REPLICAOF", "NO", "ONE"}); }

  void add_fail_overs(std::vector<ServerFault>& all)
  {
    all.push_back(guarded_fault("fail-over-kill", Excuse::fail_over, [this](Rng&) {
      test::RedisServer& old = m_group.master();
      old.kill_hard();
      m_group.await_master_other_than(old.port());
      old.restart();
      m_group.await_replicas(replicas);
      return true;
    }));
    all.push_back(guarded_fault("fail-over-stop", Excuse::fail_over, [this](Rng&) {
      test::RedisServer& old = m_group.master();
      old.stop_signal();
      m_group.await_master_other_than(old.port());
      old.cont();
      m_group.await_replicas(replicas);
      return true;
    }));
    all.push_back(guarded_fault("fail-over-command", Excuse::fail_over, [this](Rng&) { return order_fail_over(); }));
    all.push_back(guarded_fault("fail-over-unreachable", Excuse::fail_over, [this](Rng& rng) {
      const ServerTarget old = m_ways.of(m_group.master());
      old.proxy->begin({.harm = Harm::hold});
      const bool done = order_fail_over();
      std::this_thread::sleep_for(some_time(rng));
      old.proxy->end();
      return done;
    }));
  }

  // The old master lives on, and is a master as well until the sentinels tell it. Soon after another fail-over a sentinel may
  // demote the replica that was chosen; then the fail-over is given up. So it is ordered until it is over; while it goes on the
  // order is refused.
  bool order_fail_over()
  {
    const std::uint16_t old = m_group.master().port();
    const test::SentinelProcess& sentinel = m_group.sentinels.front();
    const auto is_over = [&] {
      const std::uint16_t now = sentinel.master_port();
      if (now == old) {
        sentinel.command({"SENTINEL", "FAILOVER", "mymaster"});
      }
      return now != 0 && now != old;
    };
    test::wait_until(is_over, "the fail-over is done", 60s);
    m_group.await_master_other_than(old);
    m_group.await_replicas(replicas);
    return true;
  }

  test::RedisServer& replica(Rng& rng)
  {
    std::vector<test::RedisServer*> others;
    const test::RedisServer& master = m_group.master();
    for (test::RedisServer& server : m_group.servers) {
      if (&server != &master) {
        others.push_back(&server);
      }
    }
    return *others[below(rng, others.size())];
  }

  const bool m_sync;
  test::SentinelGroup m_group;
  Redirection m_ways;  // its proxies end before the servers
};

}  // namespace

std::unique_ptr<Servers> make_sentinel_servers(bool sync) { return std::make_unique<SentinelServers>(sync); }

}  // namespace rlock::judge
