// SPDX-License-Identifier: Apache-2.0
// Runs one job and makes sure that it is dead when its lease ends.
//
//   runner (this process) ── guardian ── the job and all processes that it starts
//
// The guardian is a process of its own, so that it still works when the runner is killed, stopped or hangs. It stops
// the job when the shared deadline comes, and kills the job at once when the runner ends. Only the guardian signals the
// job. It is a child subreaper (prctl(2)), so processes that the job leaves behind become its children. One of these that called
// setsid(2) is a daemon and is never touched (process_tree.h).
#pragma once

#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "process/inherited_pipe.h"
#include "process/shared_deadline.h"
#include "process/signals.h"
#include "process/terminal.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace rlock {

// A process that KILL has not ended.
struct LeftProcess {
  pid_t pid = 0;         // 0: one that rlock cannot see
  bool refused = false;  // it may not be signalled (EPERM), because it runs as another user
  char state = '?';      // as in /proc/PID/stat; '?': /proc does not show it
};
constexpr Millis kill_patience{250};         // how long one attempt to kill all processes of a job lasts at most
constexpr Millis not_killed_period{60'000};  // between two messages about one process
constexpr int most_named{8};                 // processes in such a time
constexpr Millis first_kill_patience{10};    // of a guardian: it then tells the runner that it works
constexpr Millis slow_death{1000};           // a process that lives longer after KILL is named

// What the guardian does with processes that are left when the main process ends. until_pipe_closes: they go on,
// guarded, until none of them holds the inherited pipe or all have ended.
enum class Leftovers { stop, wait, leave, until_pipe_closes };

// A job whose runner was killed.
struct OrphanedJob {
  Instant started;
  std::string late_value;  // that go() gave; empty: unknown
};

struct JobSpec {
  std::string path;  // as find_command() returns it
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value, all of it
  std::string late_variable;             // one more name, whose value go() gives; empty: none
  int stop_signal = SIGTERM;
  Millis kill_after = default_kill_after;  // from the stop signal to KILL
  Leftovers leftovers = Leftovers::stop;
  std::optional<Millis> max_runtime;
  // For a job that is prepared before its lease is asked for: when the kernel's last resort is due for any lease that is asked
  // for later. It counts until the guardian runs again after the start of the job.
  Instant earliest_last_resort = far_future;
  // Called by the guardian after the runner was killed, when the job is dead or will not start. nullopt: it did not begin, and
  // the locks may be held, waited for, or neither. Returns whether all locks are released.
  std::function<bool(const std::optional<OrphanedJob>&)> release_for_runner;
  // Called by the guardian after the runner was killed, while processes live that KILL has not ended. Renews the locks, and returns
  // when it is to be called again; nullopt: a lock is no longer held, or a fixed lease cannot be renewed.
  std::function<std::optional<Instant>()> keep_for_runner;
};

// Why the guardian stopped the job; none: the job ended by itself.
enum class Stopped { none, lease_end, max_runtime, order, runner_gone };

// The job never ran. `error`: errno of execve(2) or of an earlier step.
struct NotExecuted {
  int error;
};
// The gate stayed closed, because the lease had ended before the job began.
struct NotStarted {};
// The prepared process was killed before it became the job. The runner calls Job::take_over and prepares another one.
struct GateKilled {};
// The main process was stopped (Ctrl-Z, a read in the background). Sent on a terminal only.
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
// The system refused a part of the kernel's last resort (last_resort.h), and the job runs without it. Each is an errno; 0: nothing
// was refused.
struct LastResortRefused {
  int timer = 0;  // it kills the job when runner and guardian are both stopped
  int pipe = 0;   // it kills the job when both are killed
};
// KILL was sent to all processes of the job, and some are left. The guardian goes on until they are dead, or until leave().
struct StillKilling {};
// One of them, told at once and then every not_killed_period.
struct NotKilled {
  LeftProcess process;
};
// With Leftovers::until_pipe_closes: the main process has ended, and other processes of the job are left.
struct PipeHoldersLeft {
  int wait_status;
};
// All processes of the job are dead and reaped, or left as asked.
struct Ended {
  int wait_status;  // of the main process, as from waitpid(2)
  Stopped why;
  bool killed;              // KILL was needed
  bool still_runs = false;  // processes are left that KILL has not ended: after leave() only
};
// Another process killed the guardian. The runner calls Job::take_over.
struct GuardianGone {
  int wait_status;
};
using JobEvent = std::variant<NotExecuted, NotStarted, GateKilled, Paused, LeftBehind, NotSignalled, LastResortRefused,
                              StillKilling, NotKilled, PipeHoldersLeft, Ended, GuardianGone>;

// Used from the main thread only, because the guardian takes the death of the thread that forked it for the runner's.
class Job {
 public:
  // Forks the guardian, which forks the job, which waits at its gate: all that can be done before the lock is held. To
  // be called while the process has one thread. `signals` and `shared_deadline` must outlive the job. ErrorCode::os:
  // fork failed.
  static Result<Job> prepare(const JobSpec& spec, const Signals& signals, SharedDeadline& shared_deadline);

  // Starts the job if the shared deadline allows it; otherwise NotStarted is next. `late_value`: of the late variable,
  // 31 bytes at most. ErrorCode::os: the guardian cannot be told. A guardian that is gone is the next event.
  Result<Done> go(std::string_view late_value = {});

  // False: the guardian or the prepared process was killed before go(). The runner calls take_over and prepares another
  // one.
  bool is_ready();

  // Kills and reaps a job that is not over: the guardian sees the socket close.
  ~Job();
  Job(Job&& other) noexcept;
  Job& operator=(Job&&) = delete;

  // Readable: next() has an event. -1 after the last one: NotExecuted, NotStarted, GateKilled, Ended or GuardianGone.
  [[nodiscard]] int fd() const { return m_socket.get(); }
  Result<std::optional<JobEvent>> next();  // nullopt: there is none now

  void forward(int signal);      // to the job's process group
  void stop(Millis kill_after);  // the stop signal now, KILL after that; a second call can only shorten the time
  void kill(Millis after);       // unless it has ended by then; a second call can only shorten the time

  // With Leftovers::until_pipe_closes.
  [[nodiscard]] int pipe_fd() const { return m_inherited_pipe.fd(); }  // POLLHUP: no process holds the pipe
  [[nodiscard]] bool pipe_is_held() const { return m_inherited_pipe.is_held(); }
  // After PipeHoldersLeft or StillKilling: the processes go on without the guardian, and Ended is next.
  void leave();
  void give_to_child();  // after a fork: the child is the runner from then on, and this object is a copy without effect

  // On a terminal (terminal.h) the job is in the process group of rlock, so that Ctrl-C, Ctrl-Z, fg, pagers and
  // pipelines work as without rlock. Otherwise it leads a group of its own.
  [[nodiscard]] bool shares_group() const { return m_terminal.is_shared(); }

  // When the guardian is gone or hangs: kills it and all processes of the job, and reaps them. Returns those that are not dead
  // after kill_patience; then the caller calls again later.
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
  std::vector<pid_t> m_earlier_children;  // of the program that this process ran before its execve(2)
  InheritedPipe m_inherited_pipe;
};

}  // namespace rlock
