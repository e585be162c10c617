// SPDX-License-Identifier: Apache-2.0
// The servers of a judge's run: what the storm's rlocks are told of them, and what goes wrong with them.
//
// All faults run one after the other on one thread, which also makes and destroys the Servers: a test::Process that this
// thread starts dies with it. Other threads call `options` and `ask_each` meanwhile. settle() is called when no `act` runs.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "redis/codec.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::judge {

using Words = std::vector<std::string>;

// What a fault may excuse: an overlap of two holders where the fault was between their begins.
enum class Excuse {
  none,        // partitions, restarts with data, script flush: rlock must bear them
  lost_count,  // the last fencing number: excuses no overlap, but a lower fence where a clock went back
  data_loss,   // a third party removed keys: DEL, FLUSHALL, a single server restarted empty
  fail_over,   // acknowledged writes may be lost: a replica was promoted
  clock,       // the clock of a server jumped
};

struct Hit {
  bool done = false;     // the server showed the fault; otherwise it did not happen, and excuses nothing
  bool gave_up = false;  // something that belongs to the fault failed, so the servers may not serve
  std::string key = {};  // the key that it removed; empty: it concerned all keys or none
  std::optional<Instant> failed_over_since =
      {};  // a replica was promoted after that, which the fault is not meant to cause
};

inline constexpr Millis longest_fault{6000};  // also how far a clock is set, at most

struct ServerFault {
  std::string name;  // for the report, "restart-with-data"
  Excuse excuse = Excuse::none;
  // Does the fault and also ends it, which may take seconds. Does not throw and fails no assertion.
  std::function<Hit(Rng&)> act;
};

// Sends one command to one server, past all proxies.
using Ask = std::function<Result<Reply>(const Words& command)>;

class Servers {
 public:
  virtual ~Servers() = default;

  // For each rlock: "-S", "unix://…", "--sync", "1". The URLs may lead through a proxy.
  [[nodiscard]] virtual Words options() const = 0;

  // For the environment of each rlock, on top of clean_environment: where rlock must connect to a proxy although the
  // servers announce addresses of their own.
  [[nodiscard]] virtual std::map<std::string, std::string> environment() const { return {}; }

  // Calls `visit` for each server that holds keys (no replica), for example to look at all keys.
  virtual void ask_each(const std::function<void(const Ask&)>& visit) = 0;

  // The faults of this topology. `keys`: the locks of the storm, for a fault that removes one.
  virtual std::vector<ServerFault> faults(const Words& keys) = 0;

  // Returns when all servers serve again, also those that a fault has left stopped, cut off, slow or disagreeing. Throws
  // when they do not.
  virtual void settle() = 0;
};

// The names for --on.
std::vector<std::string_view> topology_names();

// nullptr: no such topology. The servers run when this returns and end with the object.
std::unique_ptr<Servers> make_servers(std::string_view topology);

}  // namespace rlock::judge
