// SPDX-License-Identifier: Apache-2.0
// What the tests of faulty requests have in common: servers, keys, and a series for each way in which requests fail.
#pragma once

#include "fault/client.h"
#include "fault/fault_plan.h"
#include "fault/many_runs.h"
#include "support/redis_fixture.h"

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rlock::test {

using Servers = std::vector<std::unique_ptr<RedisServer>>;

inline constexpr Millis time_to_release =
    Millis{2000} * slowness;  // where it must succeed, though the machine may be busy
// For each answer to a client whose requests do not fail: a busy machine must not fail them either.
inline constexpr Millis time_to_answer{5000};
// Three servers are asked at once, and each of them on a thread of its own.
inline constexpr FaultTimes times_of_quorum{.ttl = Millis{1500} * slowness, .server_timeout = Millis{400} * slowness};

inline Servers start_servers(std::size_t count)
{
  Servers servers;
  for (std::size_t i = 0; i < count; ++i) {
    servers.push_back(std::make_unique<RedisServer>(RedisOptions{.alone = true}));
  }
  return servers;
}

inline std::vector<std::string> direct_urls(const Servers& servers)
{
  std::vector<std::string> urls;
  for (const auto& server : servers) {
    urls.push_back(server->direct_url());
  }
  return urls;
}

// For one run. Their names have a prefix in common.
inline std::vector<std::string> fresh_keys(int count)
{
  static std::atomic<int> runs = 0;
  const std::string prefix = "k" + std::to_string(++runs) + "-";
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) {
    keys.push_back(prefix + std::to_string(i));
  }
  return keys;
}

// Why a client whose requests do not fail did not get its lock: the machine did not give it the answers in time. Empty: for
// another reason, which is wrong.
template <typename T>
std::string too_slow_for(const std::string& client, const Result<T>& result)
{
  const bool had_no_answer = !result && is_passing(result.error().code);
  return had_no_answer ? client + " did not get the lock: " + result.error().text : "";
}

// Each fault once and for good.
inline std::vector<Series> series_of(std::span<const FaultName> faults, std::function<FaultResult(FaultPlan&)> run)
{
  std::vector<Series> series;
  for (const FaultName& fault : faults) {
    for (const bool for_good : {false, true}) {
      series.push_back({.name = std::string(fault.name) + (for_good ? ", for good" : ", once"),
                        .run = [run, fault, for_good](int number) {
                          FaultPlan plan(fault, number, for_good);
                          return run(plan);
                        }});
    }
  }
  return series;
}

}  // namespace rlock::test
