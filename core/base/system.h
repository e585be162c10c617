// SPDX-License-Identifier: Apache-2.0
// What rlock asks of the operating system for itself: the features of its kernel, its title in ps(1), its place on a core.
#pragma once

#include <string>
#include <vector>

namespace rlock {

// Whether this host lets rlock guard a job.
struct HostFacts {
  std::vector<std::string> missing;   // each with the reason: "pidfd_open (Operation not permitted)"
  bool child_signal_ignored = false;  // the caller of rlock ignored SIGCHLD
};

// Makes some system calls about this process that change nothing. `child_signal_ignored` is an argument, because only main knows
// what the caller of rlock did with SIGCHLD.
HostFacts host_facts(bool child_signal_ignored);

// The command line that ps(1) shows of this process.

// Notes the memory of the arguments and of the environment. Call this once, at the start of main.
void keep_title(char** argv);

// Shows `text` in place of the arguments, and nothing in place of the environment. The process must not use its environment
// afterwards. Does nothing where keep_title was not called. Async-signal-safe.
void replace_title(const char* text);

// How a process that has done its work leaves its core to the processes that wait for it.

// From now on this process does not preempt another process when it wakes up (SCHED_BATCH, sched(7)), because the next
// holder often runs on the same core. A process whose scheduling policy is not the default keeps that policy.
void use_batch_scheduling();

// Lets the other processes that wait for this core run first, once (sched_yield(2)).
void yield_core();

}  // namespace rlock
