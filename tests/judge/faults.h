// SPDX-License-Identifier: Apache-2.0
// What can go wrong with a server, whatever it is part of. A topology chooses which server is hit, and may change what
// a fault excuses.
#pragma once

#include "judge/proxy.h"
#include "judge/servers.h"
#include "support/redis_fixture.h"

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rlock::judge {

// A server and the proxy before it. Both outlive the faults.
struct ServerTarget {
  test::RedisServer* server;
  Proxy* proxy;
};

// Which servers to hit. `key`: one of the storm's locks, for a fault that concerns one.
using Choose = std::function<std::vector<ServerTarget>(Rng& rng, const std::string& key)>;

// What of a fault is done to one server. `begin` and `end` tell whether the server showed the fault. Between them
// `some_time` passes, if the fault lasts.
struct Recipe {
  std::string name;
  Excuse excuse = Excuse::none;
  std::function<bool(const ServerTarget&, const std::string& key, Rng&)> begin;
  std::function<bool(const ServerTarget&, const std::string& key)> end = nullptr;  // nothing: the fault is an instant
  bool removes_key = false;
};

std::span<const Recipe> network_recipes();  // of the proxies
std::span<const Recipe> process_recipes();  // the server stops for a while, or dies and starts again
std::span<const Recipe> state_recipes();    // commands, memory, disk, clock

ServerFault make_fault(const Recipe& recipe, const Choose& choose, const Words& keys);

// One for each, with the excuse that it has.
void add_faults(std::vector<ServerFault>& faults, std::span<const Recipe> recipes, const Choose& choose,
                const Words& keys);

// A fault of its own kind, for a topology. `act` may throw, as a fixture's assertion does.
ServerFault guarded_fault(const std::string& name, Excuse excuse, std::function<bool(Rng&)> act);

// A busy machine causes fail-overs that no fault is meant to cause: each fault tells of one that happened in its time or
// since the last fault. `masters` names the servers that are masters now. `expected`: faults that change the masters, and
// when they are done say themselves what that excuses.
void watch_fail_overs(std::vector<ServerFault>& faults, std::function<std::string()> masters, const Words& expected);

// For servers of which one may take the place of another: a clock step sets the clocks of all of them.
void step_clocks_together(std::vector<ServerFault>& faults, const std::deque<test::RedisServer>& servers);

// Masters with replicas, one of which is away for a while.
struct ReplicatedServers {
  std::function<test::RedisServer*(Rng&)> master;
  std::function<test::RedisServer*(Rng&)> replica;
  std::function<void(const test::RedisServer&)> await_master;  // until it serves after its restart
  std::function<void(const test::RedisServer&)> await_replica;
  Millis fail_over_after;  // of silence of a master
};

// Shorter than a fail-over takes, or of a server that is no master.
void add_away(std::vector<ServerFault>& faults, const ReplicatedServers& servers);

bool pause_server(test::RedisServer& server, Millis time);  // true

// How long a fault lasts: mostly less than a lease of the storm, sometimes longer.
Millis some_time(Rng& rng);

// What a server of the storm needs for all faults: a data file that a kill -9 leaves complete, and a clock of its own.
test::RedisOptions fault_options();

// Undoes whatever a fault has left, and returns when the server answers.
void mend(const ServerTarget& target);

}  // namespace rlock::judge
