// SPDX-License-Identifier: Apache-2.0
#include "run/keeper.h"

#include "process/detach.h"
#include "process/proc.h"
#include "run/keeper_loop.h"

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlock {
namespace {

[[noreturn]] void be_keeper(const KeeperTask& task, Fd socket)
{
  detach_as_keeper();
  ::_exit(run_keeper(task, std::move(socket)) ? 0 : 1);
}

Error refused(const char* what)
{
  return {ErrorCode::os,
          std::string("cannot start the keeper: ") + what + ": " + std::generic_category().message(errno)};
}

}  // namespace

void detach_as_keeper()
{
  detach();
  ::prctl(PR_SET_NAME, keeper_name);
}

Result<Keeper> Keeper::start(const KeeperTask& task)
{
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return refused("socketpair");
  }
  Fd callers_end(ends[0]);
  Fd keepers_end(ends[1]);
  task.store.rest();
  const pid_t keeper = ::fork();
  if (keeper < 0) {
    return refused("fork");
  }
  if (keeper == 0) {
    callers_end.reset();
    be_keeper(task, std::move(keepers_end));
  }
  keepers_end.reset();
  char byte = 0;
  if (::read(callers_end.get(), &byte, 1) != 1) {
    return Error{ErrorCode::os, "cannot start the keeper: there is no descriptor or memory for it"};
  }
  return Keeper(std::move(callers_end));
}

void Keeper::confirm_caller_has_token() const { send_byte(m_socket.get()); }

}  // namespace rlock
