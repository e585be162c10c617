// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` asks a MongoDB server, and what the answers mean for locks. Private to stores/mongo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/defaults.h"
#include "lock/finding.h"
#include "stores/mongo/mongo_connection.h"

namespace rlock::mongo {

struct ReplicaFacts {
  int members = 0;
  int voters_with_data = 0;  // that are primary or secondary now
  int arbiters = 0;
  int majority = 0;  // for which a commit waits; 0: the server does not say (before 4.4)
};

// What the server tells of itself. A user without the right to ask gets nullopt.
struct CheckedFacts {
  std::string version;
  std::string ferretdb;  // its version; empty: it is another server
  ServerFacts server;
  std::optional<ReplicaFacts> replicas = std::nullopt;
  std::optional<bool> is_persistent = std::nullopt;  // the storage engine keeps its data on disk
  std::optional<std::int64_t> connections = std::nullopt;
  std::int64_t connections_left = 0;
  bool uses_tls = false;
  bool is_this_host = false;
  std::int64_t ahead_ms = 0;   // of the server's clock
  std::int64_t unsure_ms = 0;  // the time of the round trip in which that was seen
};

// A pure function.
std::vector<Finding> findings_of(const CheckedFacts& facts);

// LockStore::check_server.
Result<std::vector<Finding>> check_server(Connection& connection, const CallLimits& limit);

}  // namespace rlock::mongo
