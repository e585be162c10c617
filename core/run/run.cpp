// SPDX-License-Identifier: Apache-2.0
#include "run/run.h"

#include "base/duration.h"
#include "base/secrets.h"
#include "base/text.h"
#include "process/command.h"
#include "run/acquire_all.h"
#include "run/ancestry.h"
#include "run/environment.h"
#include "run/outcome.h"
#include "run/supervision.h"
#include "run/waiting_line.h"

#include <memory>

namespace rlock {
namespace {

constexpr Millis pause{300};  // before all is begun again on a server that did not answer

RunEnd fail(const RunRequest& request, const RunContext& context, const Error& error)
{
  const ExitWith end = failure(error.fault, request.compatibility);
  context.log.error(error.text, {.event = "failed", .exit_code = end.code});
  return end;
}

WaitPolicy policy_of(const RunRequest& request, const Clock& clock)
{
  return {.until = request.wait ? std::optional{clock.now() + *request.wait} : std::nullopt,
          .patient = !request.wait || request.wait->count() > 0,
          .server_timeout = request.server.timeout};
}

RunEnd died_waiting(const RunContext& context)
{
  const auto arrived = context.signals.take();
  return DieOf{arrived ? arrived->number : SIGTERM};
}

RunEnd busy(const RunRequest& request, const RunContext& context, const LockBusy& one)
{
  const bool is_own =
      request.compatibility == Compatibility::own && request.shards.empty() && waits_for_itself(request.mode, one.last);
  const bool waited = request.wait && request.wait->count() > 0 && !is_own;
  context.log.notice(one.wanted + " is busy" + (waited ? " after " + show(*request.wait) : "") +
                         (one.last.holder ? ", held by " + describe(*one.last.holder) : "") +
                         (is_own ? std::string(waits_for_itself_text) : ""),
                     {.event = "busy",
                      .holder = one.last.holder ? describe(*one.last.holder) : "",
                      .place = place_of(one.last),
                      .exit_code = request.busy_code});
  return ExitWith{request.busy_code};
}

// One run, which may take several tenures to begin. The connections of the last stay open until the process ends: a server
// that sees them closed earlier is busy with that while the next holder waits for its answer. So its Tenure is never
// destroyed; its threads are stopped.
class Run {
 public:
  Run(const RunRequest& request, const RunContext& context, std::string path)
      : m_request(request), m_context(context), m_path(std::move(path)), m_policy(policy_of(request, context.clock))
  {
  }

  RunEnd run()
  {
    std::optional<RunEnd> end;
    while (!end) {
      end = try_once();
    }
    return *end;
  }

 private:
  // nullopt: nothing was run, nothing is held, and there is patience left.
  std::optional<RunEnd> try_once()
  {
    auto owned = std::make_unique<LockSet>(m_request, m_context, m_path);
    LockSet& lock_set = *owned;
    const auto taking = acquire_all(m_request, m_context, m_policy, lock_set);
    if (!taking) {
      return failed(taking.error());
    }
    if (std::holds_alternative<AllTaken>(*taking)) {
      tell_taken(lock_set);
      const RunEnd end = supervise(m_request, m_context, lock_set);
      for (LockSession& session : lock_set.sessions) {
        session.rest();  // no thread may run on: what it uses ends with our caller
      }
      [[maybe_unused]] const LockSet* const connected_to_the_end = owned.release();
      return end;
    }
    if (const auto* one_busy = std::get_if<LockBusy>(&*taking)) {
      return busy(m_request, m_context, *one_busy);
    }
    if (const auto* done = std::get_if<AlreadyDone>(&*taking)) {
      m_context.log.detail(printable(m_request.names.begin()->text()) + " has succeeded " + show_roughly(done->ago) +
                               " ago: nothing to do",
                           {.event = "already_done"});
      return ExitWith{0};
    }
    if (const auto* given_back = std::get_if<RetryNeeded>(&*taking)) {
      return begin_again(*given_back);
    }
    return died_waiting(m_context);
  }

  void tell_taken(const LockSet& lock_set) const
  {
    if (m_context.log.verbosity() != Verbosity::verbose) {
      return;
    }
    const auto waited = std::chrono::ceil<Millis>(m_context.clock.now() - m_began);
    for (const LockSession& session : lock_set.sessions) {
      m_context.log.detail(printable(session.name().text()) + " is ours after " + show(waited),
                           {.event = "acquired", .key = session.name().text(), .fence = session.fence()});
    }
    m_context.log.detail("running " + printable(shown_command(m_request.argv)), {.event = "started"});
  }

  std::optional<RunEnd> begin_again(const RetryNeeded& given_back)
  {
    if (!m_policy.patient) {
      return fail(m_request, m_context, {ErrorCode::unfit, given_back.why});
    }
    m_context.log.notice(given_back.why + "; nothing was run yet: beginning again", {.event = "lost"});
    m_server_was_there = true;
    return rest();
  }

  // A server that was never there is not waited for.
  std::optional<RunEnd> failed(const Error& error)
  {
    const bool is_over = m_policy.until && m_context.clock.now() >= *m_policy.until;
    return m_server_was_there && is_passing(error.fault) && !is_over ? rest() : fail(m_request, m_context, error);
  }

  // Never the same for two who were refused together.
  std::optional<RunEnd> rest()
  {
    const Millis moment = pause / 2 + Millis{static_cast<std::int64_t>(m_context.rng.next() % (pause.count() / 2))};
    const Wake wake = m_context.clock.sleep_until(m_context.clock.now() + moment, m_context.signals.stop());
    return wake == Wake::stopped ? std::optional<RunEnd>(died_waiting(m_context)) : std::nullopt;
  }

  const RunRequest& m_request;
  const RunContext& m_context;
  const std::string m_path;
  const Instant m_began = m_context.clock.now();
  const WaitPolicy m_policy;
  bool m_server_was_there = false;
};

}  // namespace

RunEnd run(const RunRequest& request, RunContext context)
{
  const auto path = find_command(request.argv.front(), find_variable(request.environment, "PATH"));
  if (!path) {
    return fail(request, context, path.error());
  }
  context.signals.block();
  return Run(request, context, *path).run();
}

}  // namespace rlock
