// SPDX-License-Identifier: Apache-2.0
#include "doctor/rules.h"
#include "doctor/verdict.h"

namespace rlock {
namespace {

using doctor::Verdict;

Verdict kernel(const HostFacts& facts)
{
  if (facts.missing.empty()) {
    return doctor::ok("pidfd_open, PR_SET_PDEATHSIG, CLOCK_BOOTTIME and /proc are there");
  }
  std::string all;
  for (const std::string& each : facts.missing) {
    all += (all.empty() ? "" : ", ") + each;
  }
  return doctor::warn("not there: " + all,
                      "run on Linux 5.3 or later, with /proc, and let the container's seccomp profile allow these");
}

Verdict child_signal(const HostFacts& facts)
{
  return facts.child_signal_ignored
             ? doctor::warn(
                   "whoever started us ignores SIGCHLD, and so do jobs: they do not see how their own children end",
                   "start rlock with SIGCHLD as it is by default")
             : doctor::ok("SIGCHLD is as it is by default");
}

}  // namespace

std::vector<Finding> rules_host(const HostFacts& facts)
{
  Verdict system = kernel(facts);
  Verdict children = child_signal(facts);
  return {{"host", system.status, std::move(system.found), std::move(system.advice)},
          {"sigchld", children.status, std::move(children.found), std::move(children.advice)}};
}

}  // namespace rlock
