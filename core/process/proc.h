// SPDX-License-Identifier: Apache-2.0
// Processes as /proc shows them. Nothing here is a snapshot: between two reads anybody may fork or
// die, so whoever wants to be sure asks again.
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

// The beginning of /proc/PID/stat; the command's name may hold anything, ") " and newlines
// included.
std::optional<Process> parse_stat(std::string_view line);

// The words that a process was started with; none where they cannot be read.
std::vector<std::string> command_of(pid_t pid);

// The name of the program that a process runs, 15 bytes at most; empty where it cannot be read.
std::string command_name(pid_t pid);

// The entries of a directory that are numbers: processes, threads, descriptors. Empty if
// unreadable.
std::vector<int> numbers_in(const char* directory);

// Our own children, whichever of our threads has them. Costs one system call when there are none.
std::vector<pid_t> own_children();

// Everything below us, daemons included, except what hangs on the children in `spared`. Empty where
// /proc is missing or shows another pid namespace, whose numbers would be those of earlier_children.
std::vector<Process> own_descendants(const std::vector<pid_t>& spared);

}  // namespace rlock
