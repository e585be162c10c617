// SPDX-License-Identifier: Apache-2.0
#include "run/acquire_all.h"

#include "base/text.h"
#include "run/ancestry.h"
#include "run/release_all.h"
#include "run/vigil.h"
#include "run/waiting_line.h"

#include <algorithm>
#include <span>

namespace rlock {
namespace {

constexpr Millis giving_back{500};  // how long that may take when the server does not answer

// While one lock is waited for: tells the user, and sees to the others.
class Wait final : public WaitObserver {
 public:
  Wait(const RunRequest& request, const RunContext& context, Vigil& vigil, std::string wanted,
       std::function<void()> when_first)
      : m_request(request),
        m_clock(context.clock),
        m_vigil(vigil),
        m_line(std::move(wanted), context.clock, context.log, std::move(when_first))
  {
  }

  void refused(const Busy& busy) override { m_line.refused(busy); }
  bool is_hopeless(const Busy& busy) override
  {
    return m_request.compatibility == Compatibility::own && waits_for_itself(m_request.mode, busy);
  }
  [[nodiscard]] Instant due() const override { return std::min(m_line.due(), m_vigil.due()); }
  void tick() override
  {
    if (m_clock.now() >= m_line.due()) {
      m_line.tick();
    }
    if (m_clock.now() >= m_vigil.due()) {
      m_vigil.watch();
    }
  }
  void next_in_line() override { m_line.next_in_line(); }

 private:
  const RunRequest& m_request;
  const Clock& m_clock;
  Vigil& m_vigil;
  WaitingLine m_line;
};

class Taker {
 public:
  Taker(const RunRequest& request, const RunContext& context, const WaitPolicy& policy, LockSet& lock_set)
      : m_request(request), m_context(context), m_policy(policy), m_lock_set(lock_set), m_vigil(request, context)
  {
  }

  Result<AcquireAllResult> run()
  {
    Result<AcquireAllResult> taking = take();
    if (!taking || !std::holds_alternative<AllTaken>(*taking)) {
      const Millis within = std::min(giving_back, m_request.server.timeout);
      release_all(m_request, m_context, std::span(m_lock_set.sessions).first(m_taken),
                  {.give_up = m_context.clock.now() + within});
    }
    return taking;
  }

 private:
  Result<AcquireAllResult> take()
  {
    for (LockSession& session : m_lock_set.sessions) {
      // The job's environment says which of several locks it has: then it is made when that is known.
      const bool may_prepare = &session == &m_lock_set.sessions.back() && !session.shard();
      Wait wait(m_request, m_context, m_vigil, session.wanted(), [&] { may_prepare ? get_ready() : void(); });
      const auto outcome = session.take(m_policy, m_vigil.stop(), wait);
      if (!outcome) {
        const bool was_there = m_taken > 0 && is_passing(outcome.error().fault);
        return was_there ? Result<AcquireAllResult>(RetryNeeded{outcome.error().text}) : outcome.error();
      }
      if (const auto* timed_out = std::get_if<TimedOut>(&*outcome)) {
        return AcquireAllResult{LockBusy{.wanted = session.wanted(), .last = timed_out->last}};
      }
      if (const auto* done = std::get_if<AlreadyDone>(&*outcome)) {
        return AcquireAllResult{*done};
      }
      if (std::holds_alternative<Interrupted>(*outcome)) {
        return interrupted();
      }
      m_vigil.add(session);
      ++m_taken;
    }
    return settle();
  }

  // The job must be forked from a process with one thread. The store that the last lock is waited for with has none: a quorum,
  // which has, promises nobody its turn.
  void get_ready()
  {
    m_vigil.rest();
    m_lock_set.prepared_job.get_ready(m_lock_set.locks());
  }

  Result<AcquireAllResult> settle()
  {
    const auto settled = m_vigil.settle();
    if (!settled) {
      return settled.error();
    }
    if (m_vigil.loss()) {
      return interrupted();
    }
    for (LockSession& session : m_lock_set.sessions) {
      session.rest();  // the job is forked next
    }
    return AcquireAllResult{AllTaken{}};
  }

  // By a signal, or because something was lost.
  AcquireAllResult interrupted()
  {
    const auto loss = m_vigil.loss();
    const bool by_signal = m_context.signals.stop().requested();
    return loss && !by_signal ? AcquireAllResult{RetryNeeded{*loss}} : AcquireAllResult{Interrupted{}};
  }

  const RunRequest& m_request;
  const RunContext& m_context;
  const WaitPolicy& m_policy;
  LockSet& m_lock_set;
  Vigil m_vigil;
  std::size_t m_taken = 0;
};

}  // namespace

Result<AcquireAllResult> acquire_all(const RunRequest& request, const RunContext& context, const WaitPolicy& policy,
                                     LockSet& lock_set)
{
  return Taker(request, context, policy, lock_set).run();
}

}  // namespace rlock
