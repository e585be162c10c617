// SPDX-License-Identifier: Apache-2.0
// The processes of the job: all descendants of this process but its daemons. A daemon is a child of this process in a session
// that neither this process nor the main process made: the daemon called setsid(2), and its parent ended. A process whose parent
// is in the job belongs to the job, whatever its session (`setsid -w`, script(1), sudo(8) with use_pty). This process must be a
// child subreaper, because otherwise orphans are no longer descendants.
#pragma once

#include <sys/types.h>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "process/launch.h"

namespace rlock {

// Processes as /proc shows them. The results are no snapshot: between two reads processes may fork or end. A caller that must be
// sure reads again. Threads: any thread may call the functions.

struct ProcessInfo {
  pid_t pid;
  pid_t parent;
  pid_t group;
  pid_t session;
  char state;  // as in /proc/PID/stat; unknown_state: /proc does not show the process

  [[nodiscard]] bool is_zombie() const { return state == 'Z' || state == 'X'; }
};
constexpr char unknown_state = '?';

// Parses the beginning of /proc/PID/stat. The command's name may contain any character, also ") " and newlines.
std::optional<ProcessInfo> parse_stat(std::string_view line);

// Reads /proc/PID/stat; nullopt: the process does not exist, or /proc does not show the process (hidepid in proc(5)).
std::optional<ProcessInfo> read_process(pid_t pid);

// How a process ended, as waitpid(2) tells its parent, while the parent has not asked; nullopt: unknown.
std::optional<int> zombie_wait_status(pid_t pid);

// The arguments of a process; empty: they cannot be read.
std::vector<std::string> command_of(pid_t pid);

// The name of the program that a process runs, 15 bytes at most; empty: it cannot be read.
std::string command_name(pid_t pid);

// The names of the processes of rlock.
constexpr const char* guardian_name = "rlock-guardian";
constexpr const char* keeper_name = "rlock-keeper";
constexpr std::array<std::string_view, 4> own_names{"rlock", "rflock", guardian_name, keeper_name};

// The process that traces process `pid` (ptrace(2)); 0: none, or it cannot be read.
pid_t tracer_of(pid_t pid);

// What /proc/PID/fd shows of a descriptor of this process: "pipe:[4711]"; empty: it cannot be read.
std::string link_of(int fd);

// Whether the process has a descriptor that /proc shows by `link`; false also when its descriptors cannot be read. Asks no file
// system, because one that hangs would hold the caller.
bool has_open(pid_t pid, const std::string& link);

// Sends a signal, and CONT, because a stopped process would not react. False: the process may not be signalled (EPERM).
bool send_and_wake(pid_t target, int signal);
bool send_signal(pid_t target,
                 int signal);  // the same without CONT. For a group: false: none of its processes may be signalled

// Whether the process is one of rlock, which adopts orphans. So a child of it in a session of its own is a daemon of a nested job.
bool adopts_orphans(pid_t pid);

// Waits until one of the processes has died, as far as the kernel tells, but not for long, because processes may fork meanwhile.
void wait_for_a_death(const std::vector<LeftProcess>& dying, Instant deadline);

// The names in a directory that are numbers: processes, threads, descriptors. Empty: the directory cannot be read.
std::vector<int> numbers_in(const char* directory);

// Whether this process has a child, dead or alive, in that process group.
bool has_child_in(pid_t group);

// The children of all threads of this process. If there are none, the function needs one system call. Where /proc is missing or
// shows another pid namespace, the function asks waitid(2) about each pid that a child can have, about `longest_probe` pids at
// most.
std::vector<pid_t> own_children();
constexpr pid_t longest_probe = 65'536;

// Whether this process has children, and own_children() finds none of them.
bool has_unseen_children();

// A child of this process and all its descendants, the child first. Descendants of a process that /proc does not show are
// missing. If this process is a child subreaper, they become its children when the hidden process ends.
using ProcessFamily = std::vector<ProcessInfo>;
std::vector<ProcessFamily> own_families(const std::vector<pid_t>& spared);  // except those of the children in `spared`

class ProcessTree {
 public:
  ProcessTree(pid_t main, Grouping grouping);  // `main`: the job's main process, a child of this process
  // A tree of the orphans of a guardian. `spared_children`: children that do not belong to the job. `daemons`: the sessions that
  // do not belong to the job. `main`: the job's main process; 0: unknown.
  ProcessTree(std::vector<pid_t> spared_children, std::set<pid_t> daemons, pid_t main);

  void reap();  // reaps all children that have ended; never blocks
  [[nodiscard]] std::optional<int> main_status() const { return m_status; }
  std::optional<int> take_pause();  // the signal that stopped the main process since the last call

  [[nodiscard]] std::vector<ProcessInfo> alive() const;
  [[nodiscard]] bool is_empty() const;
  // The sessions of the daemons. The first stop() or kill_all() decides which sessions are daemons: later sessions belong to the
  // job.
  [[nodiscard]] std::set<pid_t> daemons() const;

  // Each returns the processes that may not be signalled (EPERM) because they run as another user.
  using Refused = std::vector<pid_t>;
  // Sends a signal to the job's group, and to the main process if it left the group. A signal that asks to end may end a process
  // and leave its children, so the present sessions stay sessions of the job.
  Refused forward(int signal);
  Refused stop(int signal);  // sends a signal to all, and CONT, because a stopped process would not react

  // Sends KILL to all processes until none is left, `time_limit` is over, or only processes are left that may not be signalled.
  // Empty: all are dead and reaped. May be called again.
  [[nodiscard]] std::vector<LeftProcess> kill_all(Millis time_limit);

 private:
  [[nodiscard]] bool leads_group() const;
  [[nodiscard]] bool is_daemon(pid_t session) const;
  [[nodiscard]] std::vector<LeftProcess> kill_each() const;

  pid_t m_main = 0;         // 0: reaped or unknown
  pid_t m_own_session = 0;  // the session that the main process would make by setsid(2); 0: unknown
  pid_t m_group = 0;        // 0: unknown
  Grouping m_grouping = Grouping::shared;
  std::vector<pid_t> m_spared;
  std::optional<std::set<pid_t>> m_daemons;  // nullopt: not decided yet
  std::set<pid_t> m_sessions;                // the sessions of the job whenever a signal that asks to end was passed on
  bool m_childless = false;
  std::optional<int> m_status;
  std::optional<int> m_pause;
};

// Decides which of the processes that KILL has not ended messages must name: at once those that may not be signalled, after
// slow_death the others, and each process again every not_killed_period.
class NotKilledReports {
 public:
  std::vector<LeftProcess> due(const std::vector<LeftProcess>& left, Instant now);

 private:
  std::map<pid_t, Instant> m_next;  // when a message must name each process
  Instant m_minute_over{};
  int m_named =
      0;  // the number of messages in this minute; a process that KILL does not end may start others without end
};

// The message that rlock may not signal a process, and what to do.
std::string not_signalled_text(pid_t pid);

// The message that KILL has not ended a process: why, and what to do.
std::string not_killed_text(const LeftProcess& process);

}  // namespace rlock
