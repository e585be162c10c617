// SPDX-License-Identifier: Apache-2.0
#include "run/acquire.h"

#include "base/duration.h"
#include "base/secrets.h"
#include "base/text.h"
#include "lock/reentry.h"
#include "process/proc.h"
#include "run/ancestry.h"
#include "run/environment.h"
#include "run/identity.h"
#include "run/keeper.h"
#include "run/replicas.h"
#include "run/waiting_line.h"

#include <span>
#include <system_error>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace rlock {
namespace {

Error in_option(const Error& error, const char* fix) { return {error.fault, "--pid: " + error.text + fix}; }

// Before the lock is taken: a number that comes to mean another process while we wait must not mean it to us.
Result<std::optional<PidFd>> open_watched(const AcquireRequest& request)
{
  if (!request.watched) {
    return std::optional<PidFd>{};
  }
  if (request.watched->pid == ::getpid()) {
    return Error{ErrorCode::usage,
                 "--pid: that is rlock acquire itself, which ends at once (try --pid $$, not $BASHPID)"};
  }
  auto held = PidFd::open(request.watched->pid);
  if (!held) {
    return in_option(held.error(), held.error().fault == ErrorCode::usage ? " (try --pid $$)" : "");
  }
  if (request.watched->on_lost == OnLost::stop && !held->may_be_signalled()) {
    return Error{ErrorCode::usage, "--pid: no right to signal process " + std::to_string(request.watched->pid) +
                                       " (--on-lost warn does without)"};
  }
  return std::optional(*std::move(held));
}

// Readable when a signal has come, or when the watched has ended, for then nobody waits for the lock any more.
Result<Fd> give_up_on(const Signals& signals, const std::optional<PidFd>& watched)
{
  Fd either(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {signals.fd(), watched ? watched->fd() : -1}) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (fd >= 0 && ::epoll_ctl(either.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return Error{ErrorCode::os, "cannot wait for several things: " + std::generic_category().message(errno)};
    }
  }
  return either;
}

// Who is shown to operators is who has it: the watched, or the script that calls us, for we are about to end.
LockSpec spec_of(const AcquireRequest& request, const LockName& name)
{
  const pid_t holder = request.watched ? request.watched->pid : ::getppid();
  return {.name = name,
          .mode = request.mode,
          .ttl = request.ttl,
          .who = {.host = host_name(),
                  .pid = holder,
                  .user = user_name(),
                  .command = shown_command(command_of(holder)),
                  .label = request.label,
                  .since_ms = wall_clock_ms(),
                  .lease = request.ttl,
                  .automatic = request.watched.has_value()},
          .once = {},
          .sync = sync_of(request.sync, request.ttl, request.server.timeout)};
}

// One for each lock that will do.
std::vector<LockSpec> specs_of(const AcquireRequest& request)
{
  if (request.shards.empty()) {
    return {spec_of(request, request.name)};
  }
  std::vector<LockSpec> specs;
  for (const LockName& shard : request.shards) {
    specs.push_back(spec_of(request, shard));
  }
  return specs;
}

// For people: "stock", "stock (5 shards)".
std::string wanted(const AcquireRequest& request)
{
  const std::string name = printable(request.name.text());
  return request.shards.empty() ? name : name + " (" + std::to_string(request.shards.size()) + " shards)";
}

WaitPolicy policy_of(const AcquireRequest& request, const Clock& clock)
{
  return {.until = request.wait ? std::optional{clock.now() + *request.wait} : std::nullopt,
          .patient = !request.wait || request.wait->count() > 0,
          .server_timeout = request.server.timeout};
}

// Another shard may come free although this one is held by the caller.
bool is_own(const AcquireRequest& request, const Busy& busy)
{
  return request.shards.empty() && waits_for_itself(request.mode, busy);
}

class AcquireLine final : public WaitingLine {
 public:
  AcquireLine(const AcquireRequest& request, const RunContext& context)
      : WaitingLine(wanted(request), context.clock, context.log, [] {}), m_request(request)
  {
  }
  bool is_hopeless(const Busy& busy) override { return is_own(m_request, busy); }

 private:
  const AcquireRequest& m_request;
};

Result<Entry> take(LockStore& store, std::span<const LockSpec> specs, const AcquireRequest& request,
                   const RunContext& context, StopToken stop)
{
  const Owner owner = Owner::fresh(context.rng, ::getpid());
  AcquireLine line(request, context);
  return enter(store, specs, owner, ancestors_with(request.environment, specs), policy_of(request, context.clock),
               context.clock, context.rng, stop, line);
}

RunEnd busy(const AcquireRequest& request, const RunContext& context, const Busy& last)
{
  const bool own = is_own(request, last);
  const bool waited = request.wait && request.wait->count() > 0 && !own;
  context.log.notice(wanted(request) + " is busy" + (waited ? " after " + show(*request.wait) : "") +
                         (last.holder ? ", held by " + describe(*last.holder) : "") +
                         (own ? std::string(waits_for_itself_text) : ""),
                     {.event = "busy",
                      .holder = last.holder ? describe(*last.holder) : "",
                      .place = place_of(last),
                      .exit_code = request.busy_code});
  return ExitWith{request.busy_code};
}

Result<RunEnd> interrupted(const RunContext& context)
{
  if (const auto arrived = context.signals.take()) {
    return RunEnd{DieOf{arrived->number}};
  }
  return Error{ErrorCode::usage, "--pid: the process ended while its lock was waited for"};
}

// A lock that is ours, until somebody else has it.
class Acquired {
 public:
  Acquired(const AcquireRequest& request, const RunContext& context, LockStore& store, const LockSpec& spec,
           Entered entered)
      : m_request(request),
        m_context(context),
        m_store(store),
        m_spec(spec),
        m_hold(std::move(entered.hold)),
        m_taken(std::move(entered.taken))
  {
  }

  Result<RunEnd> hand_to(const std::optional<PidFd>& watched, const TellCaller& tell)
  {
    return watched ? leave_to_keeper(*watched, tell) : leave_to_itself(tell);
  }

 private:
  Result<RunEnd> leave_to_keeper(const PidFd& watched, const TellCaller& tell)
  {
    const auto keeper = Keeper::start({.store = m_store,
                                       .spec = m_spec,
                                       .hold = m_hold,
                                       .taken = m_taken,
                                       .watched = watched,
                                       .lost_signal = m_request.watched->lost_signal,
                                       .on_lost = m_request.watched->on_lost,
                                       .server_timeout = m_request.server.timeout,
                                       .clock = m_context.clock,
                                       .signals = m_context.signals});
    if (!keeper) {
      m_store.forget();
      give_back();
      return keeper.error();
    }
    const auto told = tell(held_lock(), m_taken.grant.fence);
    if (!told) {
      return told.error();  // the keeper sees us go
    }
    keeper->caller_knows();
    return RunEnd{ExitWith{0}};
  }

  Result<RunEnd> leave_to_itself(const TellCaller& tell)
  {
    const auto told = tell(held_lock(), m_taken.grant.fence);
    if (!told) {
      give_back();
      return told.error();
    }
    return RunEnd{ExitWith{0}};
  }

  [[nodiscard]] HeldLock held_lock() const
  {
    return {.name = m_spec.name,
            .hold = m_hold,
            .shard = m_request.shards.empty() ? std::nullopt : std::optional{m_taken.which}};
  }

  // Where the server does not answer, the ttl does it.
  void give_back()
  {
    const CallLimits limit{.deadline = m_context.clock.now() + m_request.server.timeout, .stop = StopToken::never()};
    [[maybe_unused]] const auto released = m_store.release(m_spec, m_hold, {}, limit);
  }

  const AcquireRequest& m_request;
  const RunContext& m_context;
  LockStore& m_store;
  const LockSpec& m_spec;
  const Hold m_hold;
  Taken m_taken;
};

}  // namespace

Result<RunEnd> acquire(const AcquireRequest& request, RunContext context, const TellCaller& tell)
{
  const auto watched = open_watched(request);
  if (!watched) {
    return watched.error();
  }
  context.signals.block();
  const auto give_up = give_up_on(context.signals, *watched);
  if (!give_up) {
    return give_up.error();
  }
  const StopToken stop(give_up->get());
  auto store = open_store(request.server, context.clock, stop);
  if (!store) {
    return store.error().fault == ErrorCode::interrupted ? interrupted(context) : store.error();
  }

  const std::vector<LockSpec> specs = specs_of(request);
  auto outcome = take(**store, specs, request, context, stop);
  if (!outcome) {
    return outcome.error();
  }
  if (const auto* timed_out = std::get_if<TimedOut>(&*outcome)) {
    return busy(request, context, timed_out->last);
  }
  if (std::holds_alternative<Interrupted>(*outcome)) {
    return interrupted(context);
  }
  auto entered = std::get<Entered>(*std::move(outcome));
  const LockSpec& spec = specs[entered.taken.which];
  return Acquired(request, context, **store, spec, std::move(entered)).hand_to(*watched, tell);
}

}  // namespace rlock
