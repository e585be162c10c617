// SPDX-License-Identifier: Apache-2.0
// Proxies before servers that announce their own addresses. Sentinels and cluster nodes know nothing of a proxy, so only
// the way of rlock is disturbed: a library that is loaded into rlock connects it to the proxy of each server.
#pragma once

#include "judge/faults.h"
#include "judge/proxy.h"
#include "support/redis_fixture.h"

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace rlock::judge {

class Redirection {
 public:
  // The servers outlive it and keep their ports.
  explicit Redirection(std::deque<test::RedisServer>& servers);

  [[nodiscard]] std::map<std::string, std::string> environment() const;
  [[nodiscard]] std::vector<ServerTarget> targets();
  [[nodiscard]] ServerTarget of(test::RedisServer& server);

  // Calls `visit` for each server that says that it is a master. Thread-safe.
  void ask_each_master(const std::function<void(const Ask&)>& visit) const;

 private:
  std::deque<test::RedisServer>& m_servers;
  std::deque<Proxy> m_proxies;  // in the order of the servers
};

}  // namespace rlock::judge
