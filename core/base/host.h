// SPDX-License-Identifier: Apache-2.0
// Whether this host lets rlock guard a job: which of the kernel features that rlock needs are there.
#pragma once

#include <string>
#include <vector>

namespace rlock {

struct HostFacts {
  std::vector<std::string> missing;   // each with the reason: "pidfd_open (Operation not permitted)"
  bool child_signal_ignored = false;  // the caller of rlock ignored SIGCHLD
};

// Makes some system calls about this process that change nothing. `child_signal_ignored` is an argument, because only main knows
// what the caller of rlock did with SIGCHLD.
HostFacts host_facts(bool child_signal_ignored);

}  // namespace rlock
