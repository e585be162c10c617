// SPDX-License-Identifier: Apache-2.0
// Starts the rlocks of a run, sends signals to their processes, and records what became of them. One thread.
#pragma once

#include "base/fd.h"
#include "judge/evidence.h"
#include "judge/frozen_files.h"
#include "judge/plan.h"
#include "judge/process_fault.h"
#include "judge/records.h"
#include "support/process.h"
#include "support/seeded_rng.h"

#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rlock::judge {

struct StormOptions {
  std::uint64_t seed;
  Millis pause;         // between two rlocks, on average
  bool process_faults;  // kill and stop processes
  bool operators;       // force-unlock
  std::string rlock;
  std::string job;
  Words server_options;
  std::size_t most_patient;       // waiters of one lock that wait for ever
  std::vector<JobForm> forms;     // of the jobs
  std::function<bool()> is_calm;  // no fault of the servers disturbs anything for some seconds
  std::map<std::string, std::optional<std::string>> environment;
  std::filesystem::path dir;      // for evidence
  FrozenFiles* frozen = nullptr;  // for JobForm::frozen; outlives the storm
};

class Storm {
 public:
  explicit Storm(StormOptions options);

  void rage(Millis time);

  // Starts nothing more, continues stopped processes, and waits until all rlocks have ended.
  void calm(Millis timeout);

  [[nodiscard]] std::vector<RunRecord> runs() const { return {m_records.begin(), m_records.end()}; }
  [[nodiscard]] const std::vector<FaultRecord>& operations() const { return m_operations; }
  [[nodiscard]] const std::map<std::string, int>& process_faults() const { return m_fault_counts; }  // by name

 private:
  struct Active {
    RunRecord& record;
    test::Process process;
    EvidenceFile file;
    std::optional<ProcessFault> fault;
  };
  // A run whose rlock has ended and whose fault may go on: its job or its guardian may still be stopped.
  struct EndedRun {
    RunRecord& record;
    ProcessFault fault;
  };
  // The main process of a job that writes nothing while it is in state D, as long as it lives.
  struct Watched {
    RunRecord& record;
    Fd process;
  };
  struct Operation {
    FaultRecord record;
    test::Process process;
  };
  void start_due(Instant now);
  void start(RunPlan plan);
  void start_burst();
  void start_patient(Instant now);
  [[nodiscard]] std::size_t patient() const;
  void operate();
  void look_at_all(Instant now);
  void look_at(Active& active, Instant now);
  void look_at_operations();
  void watch(RunRecord& run);
  void look_at_watched();
  void count_faults();
  void note_end(Active& active);
  [[nodiscard]] test::ProcessOptions process_options(const std::string& mark) const;
  [[nodiscard]] std::filesystem::path evidence_path(std::size_t run) const;
  [[nodiscard]] std::string frozen_file(std::size_t run) const;

  StormOptions m_options;
  BootClock m_clock;
  test::SeededRng m_rng;
  test::SeededRng m_rng_of_freezes;  // whose number depends on the schedule of the machine
  std::deque<RunRecord> m_records;
  std::list<Active> m_active;
  std::list<EndedRun> m_ended_runs;
  std::list<Watched> m_watched;
  std::map<std::size_t, Instant> m_seen;  // by RunRecord::id: when its watched process was last seen alive
  std::list<Operation> m_operating;
  std::vector<FaultRecord> m_operations;
  std::map<std::string, int> m_fault_counts;
  std::map<std::string, Instant> m_freed;  // when the last job under this lock ended
  Instant m_next_run{};
  Instant m_next_patient{};
  bool m_was_calm = false;
  int m_missing_in_line = 0;
  Instant m_next_operation{};
};

}  // namespace rlock::judge
