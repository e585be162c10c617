// SPDX-License-Identifier: Apache-2.0
// `rlock run`, while one of its requests or all later ones fail in one of the ways of Fault.
#include "fault/program.h"
#include "base/exit_code.h"
#include "fault/fault_plan.h"
#include "fault/scenario.h"

#include <doctest/doctest.h>

using namespace rlock;
using namespace rlock::test;

namespace {

constexpr FaultTimes times{.ttl = Millis{1800} * slowness, .server_timeout = Millis{500} * slowness};

FaultResult run_program(const Servers& servers, FaultPlan& plan)
{
  Relay relay(servers.front()->socket_path(),
              plan.options_for({.late = times.server_timeout / 3, .too_late = times.server_timeout * 3 / 2}));
  Program program(servers, {.url = relay.url(), .times = times, .job_time = times.ttl / 2});
  program.run();
  const int code = program.exit().code;
  program.expect(code != static_cast<int>(ExitCode::os), "the operating system has refused nothing");
  program.expect(code != static_cast<int>(ExitCode::busy) || plan.how() == Fault::request_late, "the lock was free");
  program.expect_free_lock();
  return {.injected = plan.injected(), .incomplete = code == 0 ? "" : program.summary(), .wrong = program.wrong()};
}

}  // namespace

TEST_CASE("fault: the Nth request of rlock run")
{
  const Servers servers = start_servers(1);
  const auto series = series_of(all_faults, [&](FaultPlan& plan) { return run_program(servers, plan); });
  expect_nothing_wrong(run_all(series), 60);
}
