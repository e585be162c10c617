// SPDX-License-Identifier: Apache-2.0
// What a lock costs the one thread of a server: commands and microseconds by INFO commandstats, for each kind an
// uncontended acquire with its release, a hand-over (a release; a job of 50 ms or more adds a renewal) and a renewal; and
// the simplest correct lock, SET NX PX and a script that compares and deletes, sent in the same way.
//
//   rlock_server_core [ROUNDS]      starts a redis-server, which ends with it
#include "bench/lab.h"
#include "engine/lock_keys.h"
#include "redis/redis_store.h"
#include "redis/subscription.h"
#include "redis/transport.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace rlock::bench;
using namespace std::chrono_literals;

namespace {

constexpr int pairs_per_round = 500;
constexpr int waiters_per_round = 100;

struct Cost {
  double us = 0;        // of requests, with the commands of their scripts
  double commands = 0;  // of scripts
};

// Since RESETSTAT. The time of `requests` is the time of the commands of their scripts, too.
Cost cost_since_reset(const RedisServer& server, const std::set<std::string>& requests, int times)
{
  static const std::set<std::string> own{"info", "config|resetstat", "hello", "script|load"};
  Cost cost;
  std::istringstream lines(as_text(server.command({"INFO", "commandstats"})));
  for (std::string line; std::getline(lines, line);) {
    std::array<char, 64> name{};
    long long calls = 0, us = 0;
    if (std::sscanf(line.c_str(), "cmdstat_%63[^:]:calls=%lld,usec=%lld", name.data(), &calls, &us) != 3) {
      continue;
    }
    const std::string command = name.data();
    if (requests.contains(command)) {
      cost.us += static_cast<double>(us);
    } else if (!own.contains(command)) {
      cost.commands += static_cast<double>(calls);
    }
  }
  return {cost.us / times, cost.commands / times};
}

struct Subject {
  const char* name;
  LockKind kind;
};

const std::vector<Subject> subjects{{"plain", Plain{}},
                                    {"string", StringLock{}},
                                    {"read-write, -x", Writer{}},
                                    {"read-write, -s", Reader{}},
                                    {"permits of 4", Permits{4}}};

class ServerCore {
 public:
  explicit ServerCore(RightsCheck check)
      : m_store(std::make_unique<Direct>(*parse_url(m_server.direct_url()), m_clock), m_clock, check)
  {
  }

  Cost pair(const LockKind& kind)
  {
    const LockSpec spec = spec_of("pair", kind);
    return measured(pairs_per_round, [&] {
      const Owner owner = next_owner();
      must_be_granted(spec, owner);
      must_be_released(spec, owner);
    });
  }

  Cost hand_over(const LockKind& kind)
  {
    const LockSpec spec = spec_of("hand-over", kind);
    std::vector<Owner> owners;
    std::vector<std::string> channels;
    for (int i = 0; i <= waiters_per_round; ++i) {
      owners.push_back(next_owner());
      channels.push_back(LockKeys(spec.name, kind).owner_channel + owners.back().text());
    }
    const std::vector<std::string_view> listens(channels.begin(), channels.end());
    const auto listening = Subscription::open(*parse_url(m_server.direct_url()), listens, m_clock, limit());
    REQUIRE(listening);
    for (const Owner& owner : owners) {
      REQUIRE(m_store.acquire(spec, owner, {.queues = true}, limit()));
    }
    std::size_t holder = 0;
    const Cost cost = measured(waiters_per_round, [&] { must_be_released(spec, owners[holder++]); });
    must_be_released(spec, owners[holder]);
    return cost;
  }

  Cost renewal(const LockKind& kind)
  {
    LockSpec spec = spec_of("renewal", kind);
    const Owner owner = next_owner();
    must_be_granted(spec, owner);
    const Cost cost = measured(pairs_per_round, [&] {
      spec.ttl += 1ms;  // else there is nothing to extend
      REQUIRE(m_store.renew_hold(spec, owner, {}, limit()));
    });
    must_be_released(spec, owner);
    return cost;
  }

  Cost simplest()
  {
    const std::string compare =
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
    Direct connection(*parse_url(m_server.direct_url()), m_clock);
    const std::string sha = as_text(m_server.command({"SCRIPT", "LOAD", compare}));
    const auto send = [&](std::vector<std::string_view> words) {
      const auto reply = connection.call("simplest", words, limit());
      REQUIRE((reply && !reply->is_error()));
    };
    const auto pair = [&] {
      send({"SET", "simplest", "token", "NX", "PX", "30000"});
      send({"EVALSHA", sha, "1", "simplest", "token"});
    };
    return measured(pairs_per_round, pair, {"set", "evalsha"});
  }

 private:
  Cost measured(int times, const std::function<void()>& act,
                const std::set<std::string>& requests = {"evalsha", "eval"}) const
  {
    m_server.command({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < times; ++i) {
      act();
    }
    return cost_since_reset(m_server, requests, times);
  }

  static LockSpec spec_of(const std::string& name, const LockKind& kind)
  {
    const HolderInfo who{.host = "web1.example.org",
                         .pid = 12345,
                         .user = "deploy",
                         .command = "./job.sh --all",
                         .label = {},
                         .since_ms = 1'732'310'000'000,
                         .lease = 30s,
                         .automatic = true};
    return {.name = *LockName::parse(name + std::to_string(kind.index())),
            .kind = kind,
            .ttl = 30s,
            .who = who,
            .once = {}};
  }
  Owner next_owner()
  {
    const std::string number = std::to_string(++m_owners);
    return Owner::of("f3b1c2d4-0000-4000-8000-" + std::string(12 - number.size(), '0') + number + ":77");
  }
  [[nodiscard]] CallLimits limit() const { return {.deadline = m_clock.now() + 10s, .stop = StopToken::never()}; }
  void must_be_granted(const LockSpec& spec, const Owner& owner)
  {
    const auto attempt = m_store.acquire(spec, owner, {.queues = true}, limit());
    REQUIRE((attempt && std::holds_alternative<Granted>(*attempt)));
  }
  void must_be_released(const LockSpec& spec, const Owner& owner)
  {
    const auto released = m_store.release(spec, owner, {}, limit());
    REQUIRE((released && std::holds_alternative<Released>(*released)));
  }

  BootClock m_clock;
  RedisServer m_server;
  RedisStore m_store;
  int m_owners = 0;
};

struct Row {
  std::string what;
  std::function<Cost()> measure;
};

}  // namespace

int main(int argc, char** argv)
{
  const FixtureFailures failures;
  const int rounds = argc > 1 ? std::stoi(argv[1]) : 15;
  ServerCore open(RightsCheck::none);
  ServerCore checked(RightsCheck::before_grant);
  std::vector<Row> rows{{"simplest", [&] { return open.simplest(); }}};
  for (const Subject& subject : subjects) {
    const std::string name = subject.name;
    rows.push_back({name + ": acquire, release", [&] { return open.pair(subject.kind); }});
    rows.push_back({name + ": acquire, release as a user", [&] { return checked.pair(subject.kind); }});
    rows.push_back({name + ": hand-over", [&] { return open.hand_over(subject.kind); }});
    rows.push_back({name + ": renewal", [&] { return open.renewal(subject.kind); }});
  }
  Figures figures;
  for (int round = 0; round < rounds; ++round) {
    for (const Row& row : rows) {
      const Cost cost = row.measure();
      figures[row.what]["us"].push_back(cost.us);
      figures[row.what]["commands"] = cost.commands;
    }
  }
  print(figures);
  remove_temp_dirs();
  return 0;
}
