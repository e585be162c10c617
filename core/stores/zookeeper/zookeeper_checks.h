// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` asks the members of a ZooKeeper ensemble, what the answers mean for locks, and the rights that a user needs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "engine/server_findings.h"
#include "lock/finding.h"
#include "stores/zookeeper/zookeeper_client.h"

namespace rlock::zookeeper {

struct MemberFacts {
  std::string where;
  std::string version;  // "3.8.0"; empty: the member does not tell (4lw.commands.whitelist)
  std::string mode;     // "leader", "follower", "observer", "standalone"; empty: it does not tell
  bool answers = false;
};

struct ServerFacts {
  std::vector<MemberFacts> members;
  Millis session{0};  // the timeout that the ensemble gave
  Millis asked_for{0};
  bool uses_tls = false;
  bool is_this_host = false;
  std::optional<record::ClockDifference> clock = std::nullopt;  // of the leader; nullopt: it did not tell
  std::vector<std::string> mixed_lines = {};  // locks in whose lines clients stand that do not exclude each other
};

// Reads the answer to the command "srvr".
void read_srvr(std::string_view text, MemberFacts& facts);

// A pure function.
std::vector<Finding> findings_of(const ServerFacts& facts);

// LockStore::check_server.
Result<std::vector<Finding>> check_server(Client& client, const Clock& clock, const CallLimits& limit);

// What zkCli.sh takes, so that `user` alone may use the nodes of the locks.
std::string rights_lines(const ConnectionSpec& spec, std::string_view user);

}  // namespace rlock::zookeeper
