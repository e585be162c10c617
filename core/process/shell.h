// SPDX-License-Identifier: Apache-2.0
// Runs a command line of the user by /bin/sh, besides the job, and waits for its end for a limited time.
#pragma once

#include "base/clock.h"
#include "process/signals.h"

#include <string>
#include <vector>

namespace rlock {

struct ShellCommand {
  std::string line;
  std::vector<std::string> environment;  // NAME=value
  Millis time_limit;                     // the command is killed after this time
};

struct ShellEnd {
  enum class How { exited, killed, time_over, not_started } how;
  int number = 0;  // exit code, signal or errno
};

// "ended with exit code 3"
std::string describe(const ShellEnd& end);

// Runs the command in a process group of its own, with nothing on standard input, with standard output on standard error, and
// with no other descriptor. The command gets the signal mask of `inherited`. A signal to `heeded` goes to the group, which then
// has a second to end; nullptr: this process gets no signals. At the end of the time limit the group is killed. The function does
// not wait for processes that the shell leaves behind when it ends by itself.
// Threads: call this while the process has one thread.
ShellEnd run_in_shell(const ShellCommand& command, const Clock& clock, const Signals& inherited, Signals* heeded);

}  // namespace rlock
