// SPDX-License-Identifier: Apache-2.0
#include "run/left_keeper.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <system_error>
#include "base/duration.h"
#include "base/text.h"
#include "process/descriptors.h"
#include "process/proc.h"

namespace rlock {

void detach_as_keeper()
{
  detach();
  ::prctl(PR_SET_NAME, keeper_name);
}

Error no_keeper(const char* what)
{
  return {ErrorCode::os,
          std::string("cannot start the keeper: ") + what + ": " + std::generic_category().message(errno)};
}

namespace {

// No signal is blocked there, so that anybody may end it. Then the leases last for a session of the store.
[[noreturn]] void keep_leases(LockStore& store, const LockName& lock)
{
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  detach_as_keeper();
  close_own_descriptors({});
  if (!store.keep_leases()) {
    write_to_syslog("the lock " + printable(lock.text()) +
                    " ended before its lease, because its keeper reached no server in time");
  }
  ::_exit(0);
}

}  // namespace

Result<Done> leave_keeper_of_leases(LockStore& store, const LockName& lock)
{
  if (!store.lasts_without_keeper()) {
    return Done{};
  }
  store.stop_threads();
  const pid_t parent = ::fork();
  if (parent == 0) {  // its child belongs to no process of this job
    const pid_t keeper = ::fork();
    if (keeper == 0) {
      keep_leases(store, lock);
    }
    ::_exit(keeper < 0 ? 1 : 0);
  }
  int status = -1;
  while (parent > 0 && ::waitpid(parent, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0 ? Result(Done{}) : no_keeper("fork");
}

std::string kept_by_keeper(const LockName& lock, Millis lasts)
{
  return "a keeper, a process of this host, keeps the lock " + printable(lock.text()) +
         ": when it is killed, the lock ends within " + show(lasts);
}

void write_to_syslog(const std::string& line)
{
  if (!line.empty()) {
    ::openlog("rlock", LOG_PID, LOG_USER);
    ::syslog(LOG_ERR, "%s", without_controls(line).c_str());
  }
}

}  // namespace rlock
