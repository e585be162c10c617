// SPDX-License-Identifier: Apache-2.0
#include "run/acquire.h"

#include <sys/epoll.h>
#include <unistd.h>
#include <system_error>
#include "process/script_tree.h"
#include "run/acquire_all.h"
#include "run/keeper.h"
#include "run/left_keeper.h"
#include "run/lock_set.h"
#include "run/release.h"

namespace rlock {
namespace {

// Opened before the wait, because another process may get the number of the watched one while this process waits.
Result<std::optional<PidFd>> open_watched(const RunRequest& request)
{
  if (!request.watched) {
    return std::optional<PidFd>{};
  }
  if (request.watched->pid == ::getpid()) {
    return Error{ErrorCode::usage,
                 "--pid: that is rlock acquire itself, which ends at once (try --pid $$, not $BASHPID)"};
  }
  auto watched = PidFd::open(request.watched->pid);
  if (!watched) {
    const Error& error = watched.error();
    return Error{error.code, "--pid: " + error.text + (error.code == ErrorCode::usage ? " (try --pid $$)" : "")};
  }
  if (request.on_lost == OnLost::stop && !watched->may_be_signalled()) {
    return Error{ErrorCode::usage, "--pid: no right to signal process " + std::to_string(request.watched->pid) +
                                       " (--on-lost warn does without)"};
  }
  return std::optional(*std::move(watched));
}

// Readable when a signal has come, or when the watched process has ended and the lock is not needed any more.
Result<Fd> stop_descriptor(const Signals& signals, const std::optional<PidFd>& watched)
{
  Fd any(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {signals.fd(), watched ? watched->fd() : -1}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (fd >= 0 && ::epoll_ctl(any.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return Error{ErrorCode::os, "cannot wait for several things: " + std::generic_category().message(errno)};
    }
  }
  return any;
}

Result<RunEnd> interrupted(const RunContext& context)
{
  if (const auto arrived = context.signals.take()) {
    return RunEnd{DieOf{arrived->number}};
  }
  return Error{ErrorCode::usage, "--pid: the process ended while its lock was waited for"};
}

// The descriptor of the script for the pipe; nullopt: only the script itself is watched.
std::optional<int> descriptor_of_script(const RunRequest& request, const RunContext& context)
{
  if (!request.watched->has_pipe) {
    return std::nullopt;
  }
  const auto free = descriptor_for_pipe(request.watched->pid, ::getppid());
  if (!free) {
    context.log.notice("only the script itself is watched, and not what it starts: " + free.error().text,
                       {.event = "script_alone", .key = request.name().text()});
  }
  return free ? std::optional(*free) : std::nullopt;
}

std::vector<TakenLock> taken_locks(const LockSet& lock_set)
{
  std::vector<TakenLock> taken;
  for (const LockSession& session : lock_set.sessions) {
    taken.push_back({.lock = session.held(), .fence = session.fence()});
  }
  return taken;
}

Result<Done> pass_to_keeper(const RunRequest& request, const RunContext& context, LockSet& lock_set,
                            const PidFd& watched, const PrintToken& print_token)
{
  const std::optional<int> digit = descriptor_of_script(request, context);
  const auto keeper = Keeper::start({.request = request,
                                     .context = context,
                                     .lock_set = lock_set,
                                     .watched = watched,
                                     .has_pipe = digit.has_value()});
  if (!keeper) {
    lock_set.store->drop_connection();
    take_back(request, context, lock_set.sessions);
    return keeper.error();
  }
  const std::string& pipe = keeper->pipe_path();
  RETURN_IF_ERROR(
      print_token(taken_locks(lock_set),
                  pipe.empty() ? std::nullopt : std::optional(PipeForScript{.path = pipe, .descriptor = *digit})));
  keeper->confirm_caller_has_token();  // else the keeper releases the lock when this process ends
  return Done{};
}

Result<Done> pass_to_caller(const RunRequest& request, const RunContext& context, LockSet& lock_set,
                            const PrintToken& print_token)
{
  LockSession& session = lock_set.sessions.front();
  const auto lasts = session.leave_keeper();
  if (lasts && *lasts) {
    context.log.notice(kept_by_keeper(session.name(), **lasts), {.event = "keeper", .key = session.name().text()});
  }
  auto passed = lasts ? print_token(taken_locks(lock_set), std::nullopt) : lasts.error();
  if (!passed) {
    take_back(request, context, lock_set.sessions);
  }
  return passed;
}

}  // namespace

Result<RunEnd> acquire(const RunRequest& request, RunContext context, const PrintToken& print_token)
{
  ASSIGN_OR_RETURN(const auto watched, open_watched(request));
  context.signals.block();
  ASSIGN_OR_RETURN(const auto stop, stop_descriptor(context.signals, watched));
  WaitPolicy policy = wait_policy(request.wait, request.server.timeout, context.clock, request.wait_server);
  bool server_was_there = false;  // a server that was never there is not waited for
  for (;;) {
    LockSet lock_set(request, context, std::nullopt);
    const auto result = acquire_all(request, context, policy, StopToken(stop.get()), lock_set);
    if (result) {
      if (const auto* busy = std::get_if<LockBusy>(&*result)) {
        return report_busy(request, *busy, context.log);
      }
      if (std::holds_alternative<AllAcquired>(*result)) {
        RETURN_IF_ERROR(watched ? pass_to_keeper(request, context, lock_set, *watched, print_token)
                                : pass_to_caller(request, context, lock_set, print_token));
        return RunEnd{ExitWith{0}};
      }
      const auto* retry = std::get_if<RetryNeeded>(&*result);
      if (retry == nullptr) {
        return interrupted(context);
      }
      if (!policy.waits) {
        return Error{ErrorCode::server_not_ready, retry->why};
      }
      context.log.notice(retry->why + "; trying again", {.event = "lost"});
      server_was_there = true;
      policy.was_in_line = retry->was_in_line;
    } else if (!server_was_there || !may_come_back(result.error(), policy, context.clock.now())) {
      return result.error();
    }
    if (pause_between_attempts(context, StopToken(stop.get())) == Wake::stopped) {
      return interrupted(context);
    }
  }
}

}  // namespace rlock
