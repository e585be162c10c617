// SPDX-License-Identifier: Apache-2.0
// What many held locks cost: one process holds them and renews them all, over few connections, as fast as it can. The
// processor time of the server is that of the process, so it contains the network.
//
//   rlock_held_locks [LOCKS [ROUNDS [CONNECTIONS]]]      starts a redis-server, which ends with it
#include "bench/lab.h"
#include "redis/redis_store.h"
#include "redis/transport.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace rlock;
using namespace rlock::test;
using namespace rlock::bench;
using namespace std::chrono_literals;

namespace {

// The part of the locks that one connection renews.
class Part {
 public:
  Part(const RedisServer& server, int first, int end)
      : m_store(std::make_unique<Direct>(*parse_url(server.direct_url()), m_clock), m_clock, RightsCheck::none),
        m_first(first),
        m_end(end)
  {
  }

  void acquire_all()
  {
    each([this](const LockSpec& spec) {
      const auto attempt = m_store.acquire(spec, m_owner, {}, limit());
      REQUIRE((attempt && std::holds_alternative<Granted>(*attempt)));
    });
  }
  void renew_all()
  {
    each([this](const LockSpec& spec) { REQUIRE(m_store.renew_hold(spec, m_owner, {}, limit())); });
  }

 private:
  void each(const std::function<void(const LockSpec&)>& act) const
  {
    const HolderInfo who{.host = "web1.example.org", .pid = 12345, .user = "deploy", .command = "./job.sh --all"};
    for (int i = m_first; i < m_end; ++i) {
      act({.name = *LockName::parse("lock" + std::to_string(i)),
           .kind = Plain{},
           .ttl = 10min,
           .who = who,
           .once = {}});
    }
  }
  [[nodiscard]] CallLimits limit() const { return {.deadline = m_clock.now() + 10s, .stop = StopToken::never()}; }

  BootClock m_clock;
  RedisStore m_store;
  int m_first;
  int m_end;
  Owner m_owner = Owner::of("f3b1c2d4-0000-4000-8000-000000000001:77");
};

void all_at_once(std::vector<std::unique_ptr<Part>>& parts, void (Part::*act)())
{
  std::vector<std::jthread> threads;
  for (const auto& part : parts) {
    threads.emplace_back([&part, act] { ((*part).*act)(); });
  }
}

double processor_seconds(pid_t pid)
{
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string word;
  double ticks = 0;
  for (int field = 1; field <= 15 && file >> word; ++field) {
    ticks += field >= 14 ? std::stod(word) : 0;  // utime and stime
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double commands_processed(const RedisServer& server)
{
  const std::string mark = "total_commands_processed:";
  const std::string stats = as_text(server.command({"INFO", "stats"}));
  return std::stod(stats.substr(stats.find(mark) + mark.size()));
}

void renew(const RedisServer& server, std::vector<std::unique_ptr<Part>>& parts, int locks, Figures& figures)
{
  const double processor = processor_seconds(server.pid());
  const double commands = commands_processed(server);
  const auto begin = std::chrono::steady_clock::now();
  all_at_once(parts, &Part::renew_all);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double busy = processor_seconds(server.pid()) - processor;
  figures["renewals a second"].push_back(locks / seconds);
  figures["commands a second"].push_back((commands_processed(server) - commands) / seconds);
  figures["share of a core"].push_back(busy / seconds);
  figures["server time"].push_back(busy / locks * 1e6);
}

}  // namespace

int main(int argc, char** argv)
{
  const FixtureFailures failures;
  const int locks = argc > 1 ? std::stoi(argv[1]) : 100'000;
  const int rounds = argc > 2 ? std::stoi(argv[2]) : 5;
  const int connections = argc > 3 ? std::stoi(argv[3]) : 4;
  Figures figures;
  figures["connections"] = connections;
  {
    const RedisServer server;
    std::vector<std::unique_ptr<Part>> parts;
    for (int i = 0; i < connections; ++i) {
      parts.push_back(std::make_unique<Part>(server, locks * i / connections, locks * (i + 1) / connections));
    }
    all_at_once(parts, &Part::acquire_all);
    for (int round = 0; round < rounds; ++round) {
      renew(server, parts, locks, figures);
    }
  }
  print(figures);
  remove_temp_dirs();
  return 0;
}
