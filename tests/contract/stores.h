// SPDX-License-Identifier: Apache-2.0
// The stores that must keep the promises of lock/store.h. A new engine is one row here. The suite also runs on every
// topology (support/topology.h): then on one store, which reaches its servers that way.
#pragma once

#include "cli/options/server.h"
#include "stores/open.h"
#include "support/databases.h"
#include "support/memory_backend.h"
#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/topology.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace rlock::test {

struct RunningServers {
  ServerSpec spec;
  std::vector<std::unique_ptr<RedisServer>> redis;
  std::unique_ptr<DatabaseServer> database = nullptr;
};

inline RunningServers records_in_memory(const std::string& scheme)
{
  static int number = 0;
  add_record_engine();
  return {.spec = {.endpoints = {*parse_server(scheme + ":contract-" + std::to_string(++number))}}, .redis = {}};
}

inline RunningServers database_server(const DatabaseRow& database)
{
  auto server = database.start();
  const auto endpoint = parse_server(server->url());
  REQUIRE_MESSAGE(endpoint, endpoint.error().text);
  return {.spec = {.endpoints = {*endpoint}}, .redis = {}, .database = std::move(server)};
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

// Reached as rlock would reach it: the topology's URLs and variables, read by the options of rlock.
inline RunningServers topology_servers()
{
  RunningServers servers;
  servers.redis.push_back(std::make_unique<RedisServer>());
  std::vector<std::string> variables;
  for (const auto& [name, value] : clean_environment()) {
    variables.push_back(name + "=" + value);
  }
  std::istringstream urls(servers.redis.back()->url());
  const cli::RawServer raw{.urls = {std::istream_iterator<std::string>(urls), {}}};
  const auto spec = cli::resolve_server(raw, cli::Environment(variables));
  REQUIRE_MESSAGE(spec, spec.error().text);
  servers.spec = *spec;
  servers.spec.restart_guard = false;
  return servers;
}

struct StoreRow {
  const char* name;
  std::function<RunningServers()> start;
  bool has_queue;  // grants in the order of arrival
};

inline const std::array stores{
    StoreRow{"records in memory", [] { return records_in_memory("records"); }, true},
    StoreRow{"records in memory with sessions", [] { return records_in_memory("record-sessions"); }, true},
    StoreRow{"redis", [] { return redis_servers(1); }, true},
    StoreRow{"quorum of three", [] { return redis_servers(3); }, false},
};

inline std::vector<StoreRow> stores_to_test()
{
  if (topology_kind() == TopologyKind::unix_socket) {
    std::vector<StoreRow> all(stores.begin(), stores.end());
    for (const DatabaseRow& each : databases) {
      if (each.by_default && each.is_installed()) {
        all.push_back({each.name.data(), [&each] { return database_server(each); }, true});
      }
    }
    return all;
  }
  return {{"the topology", topology_servers, !is_quorum_topology()}};
}

}  // namespace rlock::test
