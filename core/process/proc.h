// SPDX-License-Identifier: Apache-2.0
// Processes as /proc shows them. The results are no snapshot: between two reads processes may fork or end. A caller
// that must be sure reads again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace rlock {

struct Process {
  pid_t pid;
  pid_t parent;
  pid_t group;
  pid_t session;
  char state;

  [[nodiscard]] bool is_zombie() const { return state == 'Z' || state == 'X'; }
};

// Parses the beginning of /proc/PID/stat. The command's name may contain any character, also ") " and newlines.
std::optional<Process> parse_stat(std::string_view line);

// nullopt: the process does not exist, ended meanwhile, or /proc is missing.
std::optional<Process> read_process(pid_t pid);

// The arguments that a process was started with; empty when they cannot be read.
std::vector<std::string> command_of(pid_t pid);

// The name of the program that a process runs, 15 bytes at most; empty when it cannot be read.
std::string command_name(pid_t pid);

// The names in a directory that are numbers: processes, threads, descriptors. Empty when it cannot be read.
std::vector<int> numbers_in(const char* directory);

// The children of this process, of all its threads. One system call when there are none.
std::vector<pid_t> own_children();

// All descendants of this process, daemons included, except the children in `spared` and their descendants. Empty when
// /proc is missing or shows another pid namespace, where the numbers mean other processes.
std::vector<Process> own_descendants(const std::vector<pid_t>& spared);

}  // namespace rlock
