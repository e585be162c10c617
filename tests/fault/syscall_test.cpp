// SPDX-License-Identifier: Apache-2.0
// `rlock run`, while a call of one function of libc fails, once or for good, in the runner or in the guardian.
//
// Not here, because they cannot fail or only by a defect of rlock: close, munmap, signal masks, clocks, getpid and its like. kill
// fails with EPERM alone, which is the case of a job of another user (other_user_test.cpp). What libc does inside of one function,
// as the openat of opendir, fails together with that function. Reads and writes of an eventfd or a
// signalfd do not fail either.
#include "fault/program.h"
#include "fault/scenario.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/skip.h"

#include <cerrno>
#include <span>

using namespace rlock::test;

namespace {

constexpr FaultTimes times{.ttl = Millis{2400} * slowness, .server_timeout = Millis{600} * slowness};
constexpr Millis job_time = Millis{1000} * slowness;  // the watchdog starts, and renews once

struct FailingCall {
  const char* function;
  int error;
  const char* error_name;
};
#define WITH(error) error, #error

constexpr std::array calls_that_make{
    FailingCall{"fork", WITH(EAGAIN)},           FailingCall{"fork", WITH(ENOMEM)},
    FailingCall{"clone", WITH(EAGAIN)},          FailingCall{"clone", WITH(ENOMEM)},
    FailingCall{"pthread_create", WITH(EAGAIN)}, FailingCall{"execve", WITH(ENOMEM)},
    FailingCall{"execve", WITH(EAGAIN)},         FailingCall{"pipe2", WITH(EMFILE)},
    FailingCall{"pipe2", WITH(ENFILE)},          FailingCall{"socketpair", WITH(EMFILE)},
    FailingCall{"socket", WITH(EMFILE)},         FailingCall{"socket", WITH(ENOMEM)},
    FailingCall{"eventfd", WITH(EMFILE)},        FailingCall{"epoll_create1", WITH(EMFILE)},
    FailingCall{"signalfd", WITH(ENFILE)},       FailingCall{"timerfd_create", WITH(EMFILE)},
    FailingCall{"timer_create", WITH(EAGAIN)},   FailingCall{"mmap64", WITH(ENOMEM)},
    FailingCall{"open64", WITH(EMFILE)},         FailingCall{"opendir", WITH(ENFILE)},
    FailingCall{"dup2", WITH(EMFILE)},
};

constexpr std::array calls_that_wait{
    FailingCall{"poll", WITH(EINTR)},      FailingCall{"poll", WITH(ENOMEM)},   FailingCall{"ppoll", WITH(EINTR)},
    FailingCall{"ppoll", WITH(ENOMEM)},    FailingCall{"waitpid", WITH(EINTR)}, FailingCall{"waitid", WITH(EINTR)},
    FailingCall{"nanosleep", WITH(EINTR)},
};

constexpr std::array calls_that_pass_on{
    FailingCall{"connect", WITH(EAGAIN)}, FailingCall{"connect", WITH(EINTR)}, FailingCall{"read", WITH(EINTR)},
    FailingCall{"read", WITH(EIO)},       FailingCall{"recv", WITH(EINTR)},    FailingCall{"recv", WITH(ENOMEM)},
    FailingCall{"send", WITH(EINTR)},     FailingCall{"send", WITH(EPIPE)},    FailingCall{"send", WITH(ENOMEM)},
    FailingCall{"write", WITH(EINTR)},
};

constexpr std::array calls_that_set{
    FailingCall{"timer_settime", WITH(EINVAL)}, FailingCall{"timerfd_settime", WITH(EINVAL)},
    FailingCall{"fcntl64", WITH(EMFILE)},       FailingCall{"prctl", WITH(EINVAL)},
    FailingCall{"setpgid", WITH(EPERM)},        FailingCall{"epoll_ctl", WITH(ENOMEM)},
    FailingCall{"getrandom", WITH(EINTR)},
};

FaultResult run_with(const Servers& servers, const std::string& failure)
{
  const auto file = make_temp_dir("failed") / "yes";
  Program program(servers, {.url = servers.front()->direct_url(),
                            .times = times,
                            .job_time = job_time,
                            .env = {{"LD_PRELOAD", RLOCK_PRELOAD_FAIL_CALL},
                                    {"RLOCK_TEST_FAIL", failure},
                                    {"RLOCK_TEST_FAIL_FILE", file.string()}}});
  program.run();
  program.expect_free_lock();
  return {.injected = std::filesystem::exists(file),
          .incomplete = program.exit().code == 0 ? "" : program.summary(),
          .wrong = program.wrong()};
}

void check_calls(std::span<const FailingCall> calls, int least_runs)
{
  skip_with_address_sanitizer("a program with the address sanitizer cannot be preloaded");
  const Servers servers = start_servers(1);
  std::vector<Series> series;
  for (const FailingCall& call : calls) {
    for (const std::string how_long : {"once", "good"}) {
      if (how_long == "good" && call.error == EINTR) {
        continue;  // a signal interrupts one call
      }
      for (const std::string where : {"runner", "guardian"}) {
        const std::string rest = " " + std::to_string(call.error) + " " + how_long + " " + where;
        series.push_back({.name = std::string(call.function) + " " + call.error_name + ", " +
                                  (how_long == "once" ? "once" : "for good") + ", in the " + where,
                          .run = [&, rest, function = std::string(call.function)](int number) {
                            return run_with(servers, function + " " + std::to_string(number) + rest);
                          }});
      }
    }
  }
  expect_nothing_wrong(run_all(series), least_runs);
}

}  // namespace

TEST_CASE("fault: the Nth call that makes a process, a thread, a descriptor or memory")
{
  check_calls(calls_that_make, 40);
}

TEST_CASE("fault: the Nth call that waits") { check_calls(calls_that_wait, 30); }

TEST_CASE("fault: the Nth call that passes data on") { check_calls(calls_that_pass_on, 60); }

TEST_CASE("fault: the Nth call that sets something up") { check_calls(calls_that_set, 30); }
