// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_checks.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "engine/server_findings.h"

namespace rlock::mongo {
namespace {

using record::fail;
using record::ok;
using record::unknown;
using record::warn;

// FerretDB 1 finds a document and updates it in two steps.
Finding version(const CheckedFacts& facts)
{
  if (facts.ferretdb.starts_with("v1.") || facts.ferretdb == "unknown") {
    return fail("version", "FerretDB " + facts.ferretdb + ", whose updates are not atomic: two jobs may get one lock",
                "keep locks in MongoDB, or in the database behind FerretDB");
  }
  if (!facts.ferretdb.empty()) {
    return warn("version", "FerretDB " + facts.ferretdb + ", with which rlock was not tested", "use MongoDB");
  }
  const std::string found = "MongoDB " + facts.version;
  return facts.server.wire_version < oldest_wire_version
             ? fail("version", found + " is too old", "run MongoDB 4.4 or later")
             : ok("version", found);
}

Finding role(const CheckedFacts& facts)
{
  if (facts.server.is_mongos) {
    return fail("role", "it is mongos, which has no clock to keep locks by", "name the servers of one replica set");
  }
  if (!facts.server.is_primary) {
    return fail("role", "it is no primary server", "name the replica set: ?replicaSet=NAME");
  }
  return ok("role",
            facts.server.replica_set.empty() ? "one server" : "primary of the replica set " + facts.server.replica_set);
}

Finding persistence(const CheckedFacts& facts)
{
  if (!facts.is_persistent) {
    return unknown("persistence", "not permitted to ask for the storage engine",
                   "grant clusterMonitor to the user for a moment");
  }
  return *facts.is_persistent ? ok("persistence", "each commit waits for the journal")
                              : fail("persistence", "the storage engine keeps nothing on disk: a crash loses locks",
                                     "run mongod with the storage engine wiredTiger");
}

Finding replicas(const CheckedFacts& facts)
{
  if (facts.server.replica_set.empty()) {
    return ok("replicas", "none");
  }
  if (!facts.replicas) {
    return unknown("replicas", "not permitted to ask for the state of the replica set",
                   "grant clusterMonitor to the user for a moment");
  }
  const ReplicaFacts& set = *facts.replicas;
  const int majority = set.majority > 0 ? set.majority : set.members / 2 + 1;
  const std::string found = std::to_string(set.voters_with_data) + " of " + std::to_string(set.members) +
                            " members have the data, and each commit waits for " + std::to_string(majority);
  if (set.members > 1 && set.voters_with_data <= majority) {
    return warn("replicas", found + ": if one more of them fails, no lock is taken or renewed",
                set.arbiters > 0 ? "use a member with data instead of an arbiter" : "start the missing members");
  }
  return ok("replicas", found);
}

Finding wake_up(const CheckedFacts&)
{
  return ok("messages", "a waiter looks for messages: it learns 25 ms to 1 s later that it has the lock");
}

Finding connections(const CheckedFacts& facts)
{
  if (!facts.connections) {
    return unknown("connections", "not permitted to ask", "grant clusterMonitor to the user for a moment");
  }
  return record::connections_finding(*facts.connections, *facts.connections + facts.connections_left,
                                     "raise net.maxIncomingConnections: each waiter has two connections");
}

Finding encryption(const CheckedFacts& facts)
{
  return record::encryption_finding(facts.uses_tls, facts.is_this_host,
                                    "set up TLS at the server, and add tls=true to the URL");
}

Finding clocks(const CheckedFacts& facts)
{
  return record::clock_finding(
      facts.ahead_ms, facts.unsure_ms,
      "have NTP keep all members of the replica set; setting a clock forward would end leases early");
}

ReplicaFacts replicas_in(const Fields& status)
{
  ReplicaFacts facts;
  facts.majority = static_cast<int>(status.number("writeMajorityCount"));
  for (const Field& each : status.inner("members").all()) {
    const std::string state = each.inner().text("stateStr");
    facts.members += 1;
    facts.voters_with_data += state == "PRIMARY" || state == "SECONDARY" ? 1 : 0;
    facts.arbiters += state == "ARBITER" ? 1 : 0;
  }
  return facts;
}

}  // namespace

std::vector<Finding> findings_of(const CheckedFacts& facts)
{
  return record::findings_by(facts, version, role, persistence, replicas, wake_up, connections, encryption, clocks);
}

Result<std::vector<Finding>> check_server(Connection& connection, const CallLimits& limit)
{
  RETURN_IF_ERROR(connection.facts(limit));
  const std::int64_t before = wall_clock_ms();
  const auto server = connection.facts(limit);
  const std::int64_t after = wall_clock_ms();
  if (!server) {
    return server.error();
  }
  CheckedFacts facts;
  facts.server = *server;
  facts.ahead_ms = server->time_ms - before;
  facts.unsure_ms = after - before;
  facts.uses_tls = connection.spec().uses_tls;
  facts.is_this_host = connection.spec().is_this_host;
  ASSIGN_OR_RETURN(const auto build, connection.ask("admin", Document().add_small("buildInfo", 1), limit));
  facts.version = printable(build.fields().text("version"));
  facts.ferretdb = printable(build.fields().text("ferretdbVersion"));
  if (const auto status = connection.ask("admin", Document().add_small("serverStatus", 1), limit); status) {
    const Fields engine = status->fields().inner("storageEngine");
    facts.is_persistent = engine.find("persistent") ? std::optional(engine.flag("persistent")) : std::nullopt;
    if (const Fields counts = status->fields().inner("connections"); counts.find("available")) {
      facts.connections = counts.number("current");
      facts.connections_left = counts.number("available");
    }
  } else if (connection.server_error().code == 0) {
    return status.error();
  }
  if (!server->replica_set.empty()) {
    if (const auto status = connection.ask("admin", Document().add_small("replSetGetStatus", 1), limit); status) {
      facts.replicas = replicas_in(status->fields());
    } else if (connection.server_error().code == 0) {
      return status.error();
    }
  }
  return findings_of(facts);
}

}  // namespace rlock::mongo
