// SPDX-License-Identifier: Apache-2.0
// The thread that owns the servers of a run and injects their faults, one after the other.
#pragma once

#include "judge/records.h"
#include "judge/servers.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace rlock::judge {

struct ServerFaultOptions {
  std::string topology;
  Words keys;
  std::uint64_t seed;
  Millis pause;                                    // between two faults, on average
  std::function<bool(const std::string&)> wanted;  // by the name of the fault
  bool calms = false;                              // now and then there is no fault for some seconds
};

class ServerFaults {
 public:
  // The servers run when the constructor is done. Throws std::invalid_argument for an unknown topology.
  explicit ServerFaults(ServerFaultOptions options);
  ~ServerFaults();
  ServerFaults(const ServerFaults&) = delete;
  ServerFaults& operator=(const ServerFaults&) = delete;

  [[nodiscard]] Servers& servers() { return *m_servers; }
  [[nodiscard]] std::vector<std::string> names() const;  // of all faults that the servers can have
  void begin();
  std::string end_and_settle();  // returns when the servers serve again; otherwise says what is wrong

  // No fault goes on, and none will begin for some seconds.
  [[nodiscard]] bool is_calm() const { return m_calm; }

  // What has happened so far.
  [[nodiscard]] std::vector<FaultRecord> records() const;

 private:
  enum class Phase { start, made, storm, settling, settled, over };
  void run();
  void storm();
  void be_calm();
  bool all_answer();
  std::string settle();
  void inject(const ServerFault& fault, Rng& rng);
  void set(Phase phase);
  bool await(Phase phase, Millis timeout);  // or a later one; false: not yet

  ServerFaultOptions m_options;
  std::unique_ptr<Servers> m_servers;
  std::vector<ServerFault> m_faults;  // all of them; written before Phase::made
  mutable std::mutex m_mutex;
  std::condition_variable m_changed;
  Phase m_phase = Phase::start;  // guarded by m_mutex
  std::atomic<bool> m_calm = false;
  std::string m_wrong;                 // written before Phase::settled
  std::vector<FaultRecord> m_records;  // guarded by m_mutex
  std::thread m_thread;
};

}  // namespace rlock::judge
