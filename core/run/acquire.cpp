// SPDX-License-Identifier: Apache-2.0
#include "run/acquire.h"

#include "base/duration.h"
#include "base/text.h"
#include "process/process_tree.h"
#include "run/acquire_all.h"
#include "run/environment.h"
#include "run/keeper.h"
#include "run/lock_set.h"
#include "run/report.h"
#include "run/run.h"

#include <memory>
#include <system_error>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace rlock {
namespace {

Error in_option(const Error& error, const char* fix) { return {error.code, "--pid: " + error.text + fix}; }

// Opened before the wait, because another process may get the number of the watched one while this process waits.
Result<std::optional<PidFd>> open_watched(const AcquireRequest& request)
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
    return in_option(watched.error(), watched.error().code == ErrorCode::usage ? " (try --pid $$)" : "");
  }
  if (request.watched->on_lost == OnLost::stop && !watched->may_be_signalled()) {
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

// Operators see the watched process as the holder, or else the caller, because this process is about to end. A freeze runs no
// command.
LockRequest spec_of(const AcquireRequest& request, const LockName& name)
{
  const std::string user = user_name();
  const pid_t holder = request.watched ? request.watched->pid : ::getppid();
  return {.name = name,
          .kind = request.kind,
          .ttl = request.ttl,
          .who = {.host = host_name(),
                  .pid = holder,
                  .user = user,
                  .sudo_user = sudo_user(request.environment, user),
                  .command = request.freeze.empty() ? shown_command(command_of(holder)) : "",
                  .label = request.label,
                  .since_ms = wall_clock_ms(),
                  .lease = request.ttl,
                  .automatic = request.watched.has_value(),
                  .kill_after = request.watched ? request.watched->kill_after : default_kill_after,
                  .history = request.history,
                  .every = request.every,
                  .freeze = request.freeze},
          .once = {},
          .sync = sync_of(request.sync, request.ttl, request.server.timeout),
          .beside = request.beside,
          .ends_at = request.ends_at};
}

// A spec for each shard, or for the only lock.
std::vector<LockRequest> specs_of(const AcquireRequest& request)
{
  if (request.shards.empty()) {
    return {spec_of(request, request.name)};
  }
  std::vector<LockRequest> specs;
  for (const LockName& shard : request.shards) {
    specs.push_back(spec_of(request, shard));
  }
  return specs;
}

// False for shards, because another shard may come free.
bool would_wait_for_itself(const AcquireRequest& request, const Busy& busy)
{
  return request.shards.empty() && waits_for_itself(request.kind, busy);
}

class AcquireLine final : public WaitMessage {
 public:
  AcquireLine(const AcquireRequest& request, const RunContext& context)
      : WaitMessage(display_name(request.name, request.shards.size()), context.clock, context.log, [] {}),
        m_request(request)
  {
  }
  bool is_hopeless(const Busy& busy) override { return would_wait_for_itself(m_request, busy); }

 private:
  const AcquireRequest& m_request;
};

// The request of a session without a job.
RunRequest session_request(const AcquireRequest& request)
{
  RunRequest session{request};
  session.held_for = request.freeze.empty() ? HeldFor::script : HeldFor::nobody;
  session.names = {request.name};
  session.automatic = request.watched.has_value();
  session.kill_after = request.watched ? request.watched->kill_after : default_kill_after;
  return session;
}

Result<LockSession::Acquired> enter_lock(LockSession& session, const AcquireRequest& request, const RunContext& context,
                                         StopToken stop)
{
  const Instant began = context.clock.now();
  AcquireLine line(request, context);
  auto acquired = session.acquire(wait_policy(request.wait, request.server.timeout, context.clock, request.wait_server),
                                  stop, line);
  if (acquired && std::holds_alternative<TimedOut>(*acquired) && request.freeze.empty()) {
    session.note_skipped({.waited = std::chrono::ceil<Millis>(context.clock.now() - began)});
  }
  return acquired;
}

RunEnd busy(const AcquireRequest& request, const RunContext& context, const Busy& last)
{
  return report_busy({.lock = display_name(request.name, request.shards.size()),
                      .wait = request.wait,
                      .last = last,
                      .waits_for_itself = would_wait_for_itself(request, last),
                      .exit_code = request.busy_code},
                     context.log);
}

Result<RunEnd> interrupted(const RunContext& context)
{
  if (const auto arrived = context.signals.take()) {
    return RunEnd{DieOf{arrived->number}};
  }
  return Error{ErrorCode::usage, "--pid: the process ended while its lock was waited for"};
}

// A lock that this process holds until its caller or a keeper does.
class AcquiredLock {
 public:
  AcquiredLock(const AcquireRequest& request, const RunContext& context, LockSession& session)
      : m_request(request), m_context(context), m_session(session)
  {
  }

  Result<RunEnd> pass_on(const std::optional<PidFd>& watched, const PrintToken& print_token)
  {
    return watched ? pass_to_keeper(*watched, print_token) : pass_to_caller(print_token);
  }

 private:
  // The descriptor of the script for the pipe; nullopt: only the script itself is watched.
  [[nodiscard]] std::optional<int> descriptor() const
  {
    if (!m_request.watched->has_pipe) {
      return std::nullopt;
    }
    const auto free = descriptor_for_pipe(m_request.watched->pid, ::getppid());
    if (!free) {
      m_context.log.notice("only the script itself is watched, and not what it starts: " + free.error().text,
                           {.event = "script_alone", .key = m_session.name().text()});
    }
    return free ? std::optional(*free) : std::nullopt;
  }

  Result<RunEnd> pass_to_keeper(const PidFd& watched, const PrintToken& print_token)
  {
    const std::optional<int> digit = descriptor();
    const auto keeper =
        Keeper::start({.session = m_session,
                       .watched = watched,
                       .how = *m_request.watched,
                       .has_pipe = digit.has_value(),
                       .server_timeout = m_request.server.timeout,
                       .notify = m_request.notify,
                       .environment_for_notify = notify_environment(
                           m_request.environment, {.held = {m_session.held()}, .server = m_request.server.for_job()},
                           m_session.fence()),
                       .clock = m_context.clock,
                       .log = m_context.log,
                       .signals = m_context.signals});
    if (!keeper) {
      m_session.drop_connection();
      release();
      return keeper.error();
    }
    const std::string& pipe = keeper->pipe_path();
    const auto printed =
        print_token(m_session.held(), m_session.fence(),
                    pipe.empty() ? std::nullopt : std::optional(PipeForScript{.path = pipe, .descriptor = *digit}));
    if (!printed) {
      return printed.error();  // the keeper releases the lock when this process ends
    }
    keeper->confirm_caller_has_token();
    return RunEnd{ExitWith{0}};
  }

  Result<RunEnd> pass_to_caller(const PrintToken& print_token)
  {
    const auto lasts = m_session.leave_keeper();
    if (!lasts) {
      release();
      return lasts.error();
    }
    if (*lasts) {
      m_context.log.notice(kept_by_keeper(m_session.name(), **lasts),
                           {.event = "keeper", .key = m_session.name().text()});
    }
    const auto printed = print_token(m_session.held(), m_session.fence(), std::nullopt);
    if (!printed) {
      release();
      return printed.error();
    }
    return RunEnd{ExitWith{0}};
  }

  // Releases the lock. If the server does not answer, the ttl ends the lock.
  void release()
  {
    const CallLimits limit{.deadline = m_context.clock.now() + m_request.server.timeout, .stop = StopToken::never()};
    [[maybe_unused]] const auto released = m_session.release({.result = {.outcome = Outcome::unused}}, limit);
  }

  const AcquireRequest& m_request;
  const RunContext& m_context;
  LockSession& m_session;
};

}  // namespace

Result<RunEnd> acquire(const AcquireRequest& request, RunContext context, const PrintToken& print_token)
{
  ASSIGN_OR_RETURN(const auto watched, open_watched(request));
  context.signals.block();
  ASSIGN_OR_RETURN(const auto stop_fd, stop_descriptor(context.signals, watched));
  const StopToken stop(stop_fd.get());
  const RunRequest without_job = session_request(request);
  std::unique_ptr<LockStore> store;
  LockSession session(without_job, context, store, specs_of(request), Owner::fresh(context.rng, ::getpid()));
  ASSIGN_OR_RETURN(const auto acquired, enter_lock(session, request, context, stop));
  if (const auto* timed_out = std::get_if<TimedOut>(&acquired)) {
    return busy(request, context, timed_out->last);
  }
  if (std::holds_alternative<Interrupted>(acquired)) {
    return interrupted(context);
  }
  return AcquiredLock(request, context, session).pass_on(watched, print_token);
}

}  // namespace rlock
