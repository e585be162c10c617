// SPDX-License-Identifier: Apache-2.0
// Rules about this host.
#include "doctor/check.h"
#include "doctor/rules.h"

namespace rlock {
namespace {

using doctor::Diagnosis;

Diagnosis kernel(const HostFacts& facts)
{
  if (facts.missing.empty()) {
    return doctor::ok("pidfd_open, PR_SET_PDEATHSIG, CLOCK_BOOTTIME and /proc are there");
  }
  std::string all;
  for (const std::string& each : facts.missing) {
    all += (all.empty() ? "" : ", ") + each;
  }
  return doctor::warn("missing: " + all,
                      "run on Linux 5.3 or later, with /proc, and let the container's seccomp profile allow these");
}

Diagnosis child_signal(const HostFacts& facts)
{
  return facts.child_signal_ignored
             ? doctor::warn("rlock's caller ignores SIGCHLD, and so do jobs: they do not see how their children end",
                            "start rlock with SIGCHLD as it is by default")
             : doctor::ok("SIGCHLD is as it is by default");
}

constexpr std::pair<std::string_view, Diagnosis (*)(const HostFacts&)> host_rules[] = {{"host", kernel},
                                                                                   {"sigchld", child_signal}};

}  // namespace

std::vector<Finding> check_host(const HostFacts& facts)
{
  std::vector<Finding> findings;
  for (const auto& [name, rule] : host_rules) {
    findings.push_back(doctor::finding_of(name, rule(facts)));
  }
  return findings;
}

}  // namespace rlock
