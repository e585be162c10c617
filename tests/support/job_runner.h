// SPDX-License-Identifier: Apache-2.0
// A runner in a process of its own, which reports a result as text, for the tests of core/process.
#pragma once

#include "base/fd.h"
#include "process/job.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <filesystem>
#include <functional>
#include <string>

namespace rlock::test {

bool wait_until(const std::function<bool()>& condition);  // asks every 10 ms, for 5 s at most
pid_t pid_from(const std::filesystem::path& file);        // waits for a whole line with a number
bool is_alive(pid_t pid);                                 // false for a zombie

// Runs `sh -c text dir`, so that the script finds the test's directory in $0.
JobSpec script(const std::filesystem::path& dir, const std::string& text);

// These functions run in the runner.
std::string show(const JobEvent& event);
std::string await(Job& job);   // returns the next event
std::string follow(Job& job);  // returns all events up to the last, joined by "; "

// The times for a lease of that length that begins now.
StopTimes stop_times(Millis lease, Millis signal_lead = default_kill_after, Millis kill_lead = Millis{500});

struct JobFixture {
  Signals signals;
  SharedDeadline shared_deadline;
  explicit JobFixture(const StopTimes& times);
  explicit JobFixture(Millis lease) : JobFixture(stop_times(lease)) {}
  Job start(const JobSpec& spec);
};

// Runs the function in a child process and returns its text; "died" or "hung" if there is none.
class RunnerProcess {
 public:
  explicit RunnerProcess(const std::function<std::string()>& body);
  ~RunnerProcess();
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;
  [[nodiscard]] pid_t pid() const { return m_pid; }
  std::string result();

 private:
  pid_t m_pid;
  Fd m_result;
};

std::string in_runner(const std::function<std::string()>& body);
std::string run(const JobSpec& spec, const StopTimes& times);  // runs the job from its start to its last event
inline std::string run(const JobSpec& spec) { return run(spec, stop_times(Millis{60000})); }

// The directory of a job.
struct JobDir : std::filesystem::path {
  JobDir() : std::filesystem::path(make_temp_dir("job")) {}
};

}  // namespace rlock::test

#define JOB_DIR_CASE(title) CASE_WITH(const rlock::test::JobDir, dir, title)
