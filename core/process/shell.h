// SPDX-License-Identifier: Apache-2.0
// Runs a command line by /bin/sh and waits for it, for a bounded time. For what a user wants done besides the job.
#pragma once

#include "base/clock.h"
#include "process/signals.h"

#include <string>
#include <vector>

namespace rlock {

struct ShellCommand {
  std::string line;
  std::vector<std::string> environment;  // NAME=value
  Millis time_limit;                     // then it is killed
};

struct ShellEnd {
  enum class How { exited, killed, time_over, not_started } how;
  int number = 0;  // exit code, signal or errno
};

// "ended with exit code 3"
std::string describe(const ShellEnd& end);

// Runs in a process group of its own, with nothing on standard input and with standard output on standard error: output is for
// people. Inherits no other descriptor, and the signal mask of `inherited`. A
// signal to `heeded` goes to the group, which then has a second to end; nullptr: this process gets none. At the
// end of the time the group is killed. Processes that the shell leaves behind when it ends by itself are not waited for. To be
// called while the process has one thread.
ShellEnd run_in_shell(const ShellCommand& command, const Clock& clock, const Signals& inherited, Signals* heeded);

}  // namespace rlock
