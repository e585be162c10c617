// SPDX-License-Identifier: Apache-2.0
// Carries out the faults of a schedule.
#pragma once

#include "sim/client.h"
#include "sim/network.h"

#include <functional>

namespace rlock::sim {

class Injector {
 public:
  struct Hooks {
    std::function<void(Client&)> runner_killed;
    std::function<void(const Client&, VirtualJob&, Millis grace)> force;
  };
  // All must outlive it.
  Injector(World& world, Network& network, Server& server, Hooks hooks);

  // `of`: the client of the fault; nullptr: it is the server's.
  void begin(const Fault& fault, Client* of);
  void kill(const Client& of, Process& runner);

 private:
  void begin_on_link(const Fault& fault);
  void begin_on_server(const Fault& fault);
  void restart_server(Millis lasts);
  void kill_runner(Client& of);
  void kill_guardian_of(const Client& of);
  void stop(Process* process, const Fault& fault);

  World& m_world;
  Network& m_network;
  Server& m_server;
  const Hooks m_hooks;
  Nanos m_server_up_at = 0;
};

}  // namespace rlock::sim
