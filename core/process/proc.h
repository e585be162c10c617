// SPDX-License-Identifier: Apache-2.0
// Processes as /proc shows them. The results are no snapshot: between two reads processes may fork or end. A caller that must be
// sure reads again. Threads: any thread may call the functions.
#pragma once

#include <sys/types.h>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

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

}  // namespace rlock
