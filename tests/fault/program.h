// SPDX-License-Identifier: Apache-2.0
// One run of `rlock run` as a process, watched from its begin to its end: its job, its descriptors, its lock. While the job is
// alive, a rival tries to get the lock.
#pragma once

#include "fault/claims.h"
#include "fault/client.h"
#include "fault/rival.h"
#include "fault/scenario.h"
#include "support/process.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rlock::test {

struct ProgramOptions {
  std::string url;
  FaultTimes times;
  Millis job_time;  // how long the job runs if it is not stopped
  std::map<std::string, std::optional<std::string>> env = {};
};

class Program {
 public:
  Program(const Servers& servers, ProgramOptions options);

  void run();               // to its end
  void expect_free_lock();  // after the end, when nothing is under way any more
  void expect(bool holds, const std::string& what);

  [[nodiscard]] bool job_began() const { return m_begun > 0; }
  [[nodiscard]] const Exit& exit() const { return m_exit; }
  [[nodiscard]] Millis took() const { return m_took; }
  // What must never happen, with the exit code and what rlock has said.
  [[nodiscard]] std::vector<std::string> wrong() const;
  [[nodiscard]] std::string summary() const;

 private:
  void read_log();
  void watch(Process& rlock);
  void judge_job();
  void judge_exit();
  void judge_descriptors();

  const ProgramOptions m_options;
  const std::vector<std::string> m_keys = fresh_keys(1);
  const std::filesystem::path m_dir;
  const BootClock m_clock;
  Claims m_claims;
  Rival m_rival;

  int m_begun = 0;  // how often the job began
  bool m_ended = false;
  pid_t m_job = 0;
  Exit m_exit;
  Millis m_took{0};
  std::string m_err;
  std::string m_out;  // the numbers of the job's descriptors
  std::vector<std::string> m_wrong;
};

}  // namespace rlock::test
