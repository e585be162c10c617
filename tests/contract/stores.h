// SPDX-License-Identifier: Apache-2.0
// The stores that must keep the promises of lock/store.h. A new engine is one row here.
#pragma once

#include "store/open.h"
#include "support/memory_store.h"
#include "support/redis_fixture.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace rlock::test {

struct RunningServers {
  ServerSpec spec;
  std::vector<std::unique_ptr<RedisServer>> redis;
};

inline RunningServers memory_server()
{
  static int number = 0;
  add_memory_engine();
  return {.spec = {.endpoints = {*parse_server("memory:contract-" + std::to_string(++number))}}, .redis = {}};
}

inline RunningServers redis_servers(int count)
{
  RunningServers servers;
  for (int i = 0; i < count; ++i) {
    servers.redis.push_back(std::make_unique<RedisServer>(RedisOptions{.alone = true}));
    servers.spec.endpoints.push_back(*parse_server(servers.redis.back()->direct_url()));
  }
  servers.spec.restart_guard = false;  // new servers count at once
  return servers;
}

struct StoreRow {
  const char* name;
  RunningServers (*start)();
  bool has_queue;  // grants in the order of arrival
};

inline constexpr std::array stores{
    StoreRow{"memory", memory_server, true},
    StoreRow{"redis", [] { return redis_servers(1); }, true},
    StoreRow{"quorum of three", [] { return redis_servers(3); }, false},
};

}  // namespace rlock::test
