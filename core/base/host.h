// SPDX-License-Identifier: Apache-2.0
// Whether this host lets rlock guard a job: which of the kernel's ways are open to us.
#pragma once

#include <string>
#include <vector>

namespace rlock {

struct HostFacts {
  std::vector<std::string> missing;   // each with the reason: "pidfd_open (Operation not permitted)"
  bool child_signal_ignored = false;  // SIGCHLD, by who started us
};

// Some system calls about this process; changes nothing. What was inherited of SIGCHLD only main can tell.
HostFacts host_facts(bool child_signal_ignored);

}  // namespace rlock
