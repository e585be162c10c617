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
class Wait final : public Onlooker {
 public:
  Wait(const RunRequest& request, const World& world, Vigil& vigil, std::string wanted,
       std::function<void()> when_first)
      : m_request(request),
        m_clock(world.clock),
        m_vigil(vigil),
        m_line(std::move(wanted), world.clock, world.log, std::move(when_first))
  {
  }

  void refused(const Busy& busy) override { m_line.refused(busy); }
  bool is_hopeless(const Busy& busy) override
  {
    return m_request.manners == Manners::own && waits_for_itself(m_request.mode, busy);
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
  Taker(const RunRequest& request, const World& world, const WaitPolicy& policy, Tenure& tenure)
      : m_request(request), m_world(world), m_policy(policy), m_tenure(tenure), m_vigil(request, world)
  {
  }

  Result<Taking> run()
  {
    Result<Taking> taking = take();
    if (!taking || !std::holds_alternative<AllTaken>(*taking)) {
      const Millis within = std::min(giving_back, m_request.server.timeout);
      let_go(m_request, m_world, std::span(m_tenure.holdings).first(m_taken),
             {.give_up = m_world.clock.now() + within});
    }
    return taking;
  }

 private:
  Result<Taking> take()
  {
    for (Holding& holding : m_tenure.holdings) {
      // The job's environment says which of several locks it has: then it is made when that is known.
      const bool may_prepare = &holding == &m_tenure.holdings.back() && !holding.shard();
      Wait wait(m_request, m_world, m_vigil, holding.wanted(), [&] { may_prepare ? get_ready() : void(); });
      const auto outcome = holding.take(m_policy, m_vigil.stop(), wait);
      if (!outcome) {
        const bool was_there = m_taken > 0 && is_passing(outcome.error().fault);
        return was_there ? Result<Taking>(GivenBack{outcome.error().text}) : outcome.error();
      }
      if (const auto* timed_out = std::get_if<TimedOut>(&*outcome)) {
        return Taking{OneBusy{.wanted = holding.wanted(), .last = timed_out->last}};
      }
      if (const auto* done = std::get_if<AlreadyDone>(&*outcome)) {
        return Taking{*done};
      }
      if (std::holds_alternative<Interrupted>(*outcome)) {
        return interrupted();
      }
      m_vigil.add(holding);
      ++m_taken;
    }
    return settle();
  }

  // The job must be forked from a process with one thread. The store that the last lock is waited for with has none: a quorum,
  // which has, promises nobody its turn.
  void get_ready()
  {
    m_vigil.rest();
    m_tenure.preparation.get_ready(m_tenure.locks());
  }

  Result<Taking> settle()
  {
    const auto settled = m_vigil.settle();
    if (!settled) {
      return settled.error();
    }
    if (m_vigil.loss()) {
      return interrupted();
    }
    for (Holding& holding : m_tenure.holdings) {
      holding.rest();  // the job is forked next
    }
    return Taking{AllTaken{}};
  }

  // By a signal, or because something was lost.
  Taking interrupted()
  {
    const auto loss = m_vigil.loss();
    const bool by_signal = m_world.signals.stop().requested();
    return loss && !by_signal ? Taking{GivenBack{*loss}} : Taking{Interrupted{}};
  }

  const RunRequest& m_request;
  const World& m_world;
  const WaitPolicy& m_policy;
  Tenure& m_tenure;
  Vigil m_vigil;
  std::size_t m_taken = 0;
};

}  // namespace

Result<Taking> take_all(const RunRequest& request, const World& world, const WaitPolicy& policy, Tenure& tenure)
{
  return Taker(request, world, policy, tenure).run();
}

}  // namespace rlock
