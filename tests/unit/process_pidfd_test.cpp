// SPDX-License-Identifier: Apache-2.0
#include "process/signals.h"
#include "support/test.h"
#include "support/wait_until.h"

#include <csignal>
#include <thread>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace rlock::test;

TEST_CASE("pidfd: a process that has ended is named, and so is a thread")
{
  const pid_t ended = ::fork();
  if (ended == 0) {
    ::_exit(0);
  }
  REQUIRE(::waitpid(ended, nullptr, 0) == ended);
  const auto none = PidFd::open(ended);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::usage);
  CHECK(none.error().text == "there is no process " + std::to_string(ended));

  pid_t id = 0;
  Result<PidFd> thread = Error{ErrorCode::internal, "not asked"};
  std::thread([&] {
    id = static_cast<pid_t>(::syscall(SYS_gettid));
    thread = PidFd::open(id);
  }).join();
  REQUIRE_FALSE(thread);
  CHECK(thread.error().code == ErrorCode::usage);
  CHECK(thread.error().text == std::to_string(id) + " is no process of its own but a thread");
}

TEST_CASE("pidfd: how a process ended that is no child of the one who asks")
{
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto held = PidFd::open(child);
  REQUIRE(held);
  CHECK_FALSE(held->wait_status());
  held->signal(SIGKILL);
  wait_until([&] { return held->has_ended(); }, "it has ended");
  CHECK(held->wait_status() == SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  const auto after = held->wait_status();
  CHECK((!after || after == status));  // since Linux 6.15 the kernel keeps it
}
