// SPDX-License-Identifier: Apache-2.0
// One job, and the certainty that it is dead.
//
//   runner (us) ── guardian ── the job and all it starts
//
// The guardian is a process of its own so that the certainty survives a runner that is killed, stopped or
// hung: it stops the job when the lifeline runs out, and kills it at once when the runner is gone. It is the
// only one who signals the job. It is a child subreaper (prctl(2)), so what the job leaves behind becomes
// its child; what called setsid(2) is a daemon started properly and is never touched.
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

// Processes the job leaves when its main process ends. heirs: they go on, guarded, until nobody of them has the
// descriptor that all of the job inherits, or all have ended.
enum class Leftovers { stop, wait, leave, until_pipe_closes };

struct JobSpec {
  std::string path;  // what find_command found
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value, the whole of it
  std::string late_variable;             // one more, whose value only go() knows; empty: none
  int stop_signal = SIGTERM;
  Millis kill_after = default_kill_after;
  Leftovers leftovers = Leftovers::stop;
  std::optional<Millis> max_runtime;
  // Before SharedDeadline::valid_until: when the stop signal is sent, when KILL is, and when the kernel kills a guardian that
  // did not get that far.
  Millis signal_lead = default_kill_after;
  Millis kill_lead{500};
  Millis last_resort_lead{0};
  // Called by the guardian when the runner was killed, once the job is dead. Whether all locks are released.
  std::function<bool(Instant started)> release_for_runner;
};

// Why the guardian stopped the job; none: it ended by itself.
enum class Stopped { none, lease_end, max_runtime, order, runner_gone };

struct NotExecuted {
  int error;
};                     // errno of execve, or of what comes before it: the job never ran
struct NotStarted {};  // the gate stayed shut: the lifeline had run out before the job began
struct GateKilled {
};  // the prepared process was killed before it became the job: call Job::take_over, and prepare another
struct Paused {
  int signal;
};  // the job's main process was stopped (Ctrl-Z, a read in the background); only told on a terminal
struct LeftBehind {
  unsigned count;
};  // the main process ended and these are still there; what happens is as JobSpec::leftovers says
struct NotSignalled {
  pid_t pid;
};  // a process of the job, which runs as another user (EPERM)
struct PipeHoldersLeft {
  int wait_status;
};                  // Leftovers::heirs: the main process ended, and others of the job are there
struct Ended {      // all of it is dead and reaped, or left as asked
  int wait_status;  // of the main process, as waitpid(2) gives it
  Stopped why;
  bool killed;              // KILL was needed
  bool still_runs = false;  // but for processes that may not be signalled
};
struct GuardianGone {
  int wait_status;
};  // somebody killed it: call Job::take_over
using JobEvent = std::variant<NotExecuted, NotStarted, GateKilled, Paused, LeftBehind, NotSignalled, PipeHoldersLeft,
                              Ended, GuardianGone>;

// Used from the main thread only: the death of the thread that forked would be taken for the runner's.
class Job {
 public:
  // Forks the guardian, which forks the job, which waits at its gate: all that can be done before the lock is
  // ours. To be called while the process has one thread. `signals` and `lifeline` must outlive the job.
  // ErrorCode::os when fork is refused.
  static Result<Job> prepare(const JobSpec& spec, const Signals& signals, SharedDeadline& shared_deadline);

  // Lets it go, if the lifeline allows; else NotStarted is next. The value of late_variable: 31 bytes at most.
  void go(std::string_view late_value = {});

  // False: the guardian or the prepared process was killed before go(). Call take_over, and prepare another.
  bool is_ready();

  // A job that is not over is killed and reaped: closing the socket is how the guardian hears of it.
  ~Job();
  Job(Job&& other) noexcept;
  Job& operator=(Job&&) = delete;

  // Readable: next() has something. -1 after the last event: NotExecuted, NotStarted, GateKilled, Ended, GuardianGone.
  [[nodiscard]] int fd() const { return m_socket.get(); }
  Result<std::optional<JobEvent>> next();  // nullopt: nothing now

  void forward(int signal);      // to the job's group, as the user's own signal would
  void stop(Millis kill_after);  // the stop signal now, KILL after that; a second call can only hasten it

  // With Leftovers::heirs.
  [[nodiscard]] int pipe_fd() const { return m_inherited_pipe.fd(); }  // POLLHUP: there are none
  [[nodiscard]] bool pipe_is_held() const { return m_inherited_pipe.any(); }
  void leave();      // after PipeHoldersLeft: who is left is let alone, and Ended comes next
  void hand_over();  // after a fork: the child is the runner now, and this only a copy; to the guardian nothing changes

  // On a terminal (terminal.h) the job shares the process group of rlock, so that Ctrl-C, Ctrl-Z, fg, pagers and
  // pipelines work as without rlock; elsewhere it leads a group of its own.
  [[nodiscard]] bool shares_group() const { return m_terminal.is_shared(); }

  // The guardian is gone or hangs: kills it, and with our own hands everything it guarded, and reaps that.
  // Returns the processes that may not be signalled, and still run.
  std::vector<pid_t> take_over();

 private:
  Job(Fd socket, pid_t guardian, const SharedDeadline& shared_deadline, Terminal terminal,
      std::vector<pid_t> earlier_children, InheritedPipe inherited_pipe);
  void note(const JobEvent& event);
  void part(std::optional<int> wait_status);
  int reap_guardian();

  Fd m_socket;
  pid_t m_guardian;  // 0: reaped
  const SharedDeadline* m_shared_deadline;
  Terminal m_terminal;
  std::vector<pid_t> m_earlier_children;  // children we had before: whoever exec'ed us left them
  InheritedPipe m_inherited_pipe;
};

}  // namespace rlock
