// SPDX-License-Identifier: Apache-2.0
// Runs one job and makes sure that it is dead when its lease ends.
//
//   runner (this process) ── guardian ── the job and all processes that it starts
//
// The guardian is a process of its own, so that it still works when the runner is killed, stopped or hangs. The guardian stops
// the job when the shared deadline comes, and kills the job at once when the runner ends. Only the guardian signals the job. The
// guardian is a child subreaper (prctl(2)), so processes that the job leaves behind become children of the guardian. Such a
// process that called setsid(2) is a daemon and stays untouched (process_tree.h).
#pragma once

#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "process/shared_deadline.h"
#include "process/signals.h"
#include "process/terminal.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace rlock {

// A process that KILL has not ended.
struct LeftProcess {
  pid_t pid = 0;         // 0: a process that rlock cannot see
  bool refused = false;  // rlock may not signal the process (EPERM), because it runs as another user
  char state = '?';      // as in /proc/PID/stat; '?': /proc does not show the process
};
constexpr Millis kill_attempt_time{250};     // how long one attempt to kill all processes of a job lasts at most
constexpr Millis not_killed_period{60'000};  // the time between two messages about one process
constexpr int most_named{8};                 // how many processes messages name in not_killed_period
constexpr Millis first_kill_attempt_time{
    10};                            // the same for the first attempt of the guardian, before it sends StillKilling
constexpr Millis slow_death{1000};  // a message names a process that lives longer after KILL

// What the guardian does with processes that are left when the main process ends. until_pipe_closes: the guardian guards them
// until none of them holds the inherited pipe or all have ended.
enum class Leftovers { stop, wait, leave, until_pipe_closes };

// A job whose runner was killed.
struct OrphanedJob {
  Instant started;
  std::string late_value;  // the argument of go(); empty: unknown
};

struct JobSpec {
  std::string path;  // the result of find_command()
  std::vector<std::string> argv;
  std::string lock_names;                // for messages: "a, b"
  std::vector<std::string> environment;  // the whole environment, as NAME=value
  std::string late_variable;             // the name of one more variable, whose value go() gives; empty: none
  int stop_signal = SIGTERM;
  Millis kill_after = default_kill_after;  // the time from the stop signal to KILL
  Leftovers leftovers = Leftovers::stop;
  std::optional<Millis> max_runtime;
  // The time of the kernel's last resort for a job that is prepared before the request for its lease. This time is early enough
  // for each lease that the runner may request, and counts until the guardian runs again after the start of the job.
  Instant earliest_last_resort = far_future;
  // Called by the guardian after the runner was killed, when the job is dead or will not start. nullopt: the job did not begin;
  // the runner may hold the locks, wait for them, or neither. Returns whether all locks are released.
  std::function<bool(const std::optional<OrphanedJob>&)> release_for_runner;
  // Called by the guardian after the runner was killed, while processes live that KILL has not ended. Renews the locks, and
  // returns when the guardian must call it again; nullopt: never, because a lock is no longer held or has a fixed lease.
  std::function<std::optional<Instant>()> keep_for_runner;
};

// Why the guardian stopped the job; none: the job ended by itself.
enum class Stopped { none, lease_end, max_runtime, order, runner_gone };

// The job never ran.
struct NotExecuted {
  int error;  // the errno of execve(2) or of an earlier step
};
// The gate stayed closed, because the lease had ended before the job began.
struct NotStarted {};
// The prepared process was killed before it became the job. The runner calls Job::take_over and prepares another process.
struct GateKilled {};
// The main process was stopped (Ctrl-Z, a read in the background). The guardian sends this on a terminal only.
struct Paused {
  int signal;
};
// The main process has ended, and `count` processes are left. JobSpec::leftovers says what happens to them.
struct LeftBehind {
  unsigned count;
};
// A process of the job runs as another user (EPERM).
struct NotSignalled {
  pid_t pid;
};
// The system refused a part of the kernel's last resort (last_resort.h), and the job runs without that part. Each member is an
// errno; 0: the system did not refuse the part.
struct LastResortRefused {
  int timer = 0;  // the part that kills the job when runner and guardian are both stopped
  int pipe = 0;   // the part that kills the job when both are killed
};
// The guardian has sent KILL to all processes of the job, and some are left. The guardian repeats KILL until they are dead, or
// until leave().
struct StillKilling {};
// One of those processes. The guardian sends this at once, and then every not_killed_period.
struct NotKilled {
  LeftProcess process;
};
// Leftovers::until_pipe_closes: the main process has ended, and other processes of the job are left.
struct PipeHoldersLeft {
  int wait_status;
};
// All processes of the job are dead and reaped, or the runner called leave().
struct JobEnd {
  int wait_status;  // of the main process, as from waitpid(2)
  Stopped why;
  bool killed;              // KILL was needed
  bool still_runs = false;  // after leave(): KILL has not ended some processes
};
// Another process killed the guardian. The runner calls Job::take_over.
struct GuardianGone {
  int wait_status;
};
using JobEvent = std::variant<NotExecuted, NotStarted, GateKilled, Paused, LeftBehind, NotSignalled, LastResortRefused,
                              StillKilling, NotKilled, PipeHoldersLeft, JobEnd, GuardianGone>;

// Threads: used from the main thread only, because the guardian takes the death of the thread that forked it for the death of the
// runner.
class Job {
 public:
  // Forks the guardian. The guardian forks the job, which waits at its gate. `signals` and `shared_deadline` must outlive the
  // job. Threads: call this while the process has one thread. ErrorCode::os: fork failed.
  static Result<Job> prepare(const JobSpec& spec, const Signals& signals, SharedDeadline& shared_deadline);

  // Starts the job if the shared deadline allows that; otherwise the next event is NotStarted. `late_value`: the value of
  // JobSpec::late_variable, 31 bytes at most. ErrorCode::os: the message to the guardian failed. If the guardian is gone, the
  // next event is GuardianGone.
  Result<Done> go(std::string_view late_value = {});

  // False: the guardian or the prepared process was killed before go(). The runner calls take_over and prepares another job.
  bool is_ready();

  // Kills and reaps a job that is not over, because the guardian sees the socket close.
  ~Job();
  Job(Job&& other) noexcept;
  Job& operator=(Job&&) = delete;

  // Readable when next() has an event. -1 after the last event: NotExecuted, NotStarted, GateKilled, JobEnd or GuardianGone.
  [[nodiscard]] int fd() const { return m_socket.get(); }
  Result<std::optional<JobEvent>> next();  // nullopt: there is no event now

  void forward(int signal);  // sends the signal to the job's process group
  void stop(
      Millis
          kill_after);  // sends the stop signal now, and KILL after `kill_after`; a second call can only shorten that
  void kill(Millis after);  // sends KILL after `after`, unless the job has ended; a second call can only shorten that

  // The two functions for Leftovers::until_pipe_closes.
  [[nodiscard]] int pipe_fd() const { return m_inherited_pipe.fd(); }  // POLLHUP: no process holds the pipe
  [[nodiscard]] bool pipe_is_held() const { return m_inherited_pipe.is_held(); }
  // Call this after PipeHoldersLeft or StillKilling: the processes go on without the guardian, and the next event is JobEnd.
  void leave();
  void give_to_child();  // call after a fork: the child becomes the runner, and this object has no effect any more

  // Whether the job is in the process group of rlock. It is on a terminal (terminal.h), so that Ctrl-C, Ctrl-Z, fg, pagers and
  // pipelines work as without rlock. Otherwise the job leads a group of its own.
  [[nodiscard]] bool shares_group() const { return m_terminal.is_shared(); }

  // Kills a guardian that is gone or hangs, and all processes of the job, and reaps them. Returns the processes that are not dead
  // after kill_attempt_time; then the caller calls again later.
  std::vector<LeftProcess> take_over();

 private:
  Job(Fd socket, pid_t guardian, const SharedDeadline& shared_deadline, Terminal terminal,
      std::vector<pid_t> earlier_children, InheritedPipe inherited_pipe);
  void note(const JobEvent& event);
  void close_socket();
  void finish(std::optional<int> wait_status);
  int reap_guardian();

  Fd m_socket;
  pid_t m_guardian;  // 0: reaped
  const SharedDeadline* m_shared_deadline;
  Terminal m_terminal;
  std::vector<pid_t> m_earlier_children;  // children of the program that this process ran before its execve(2)
  InheritedPipe m_inherited_pipe;
};

}  // namespace rlock
