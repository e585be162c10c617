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

RunEnd fail(const RunRequest& request, const World& world, const Error& error)
{
  const ExitWith end = failure(error.fault, request.manners);
  world.log.error(error.text, {.event = "failed", .exit_code = end.code});
  return end;
}

WaitPolicy policy_of(const RunRequest& request, const Clock& clock)
{
  return {.until = request.wait ? std::optional{clock.now() + *request.wait} : std::nullopt,
          .patient = !request.wait || request.wait->count() > 0,
          .server_timeout = request.server.timeout};
}

RunEnd died_waiting(const World& world)
{
  const auto arrived = world.signals.take();
  return DieOf{arrived ? arrived->number : SIGTERM};
}

RunEnd busy(const RunRequest& request, const World& world, const OneBusy& one)
{
  const bool is_own =
      request.manners == Manners::own && request.shards.empty() && waits_for_itself(request.mode, one.last);
  const bool waited = request.wait && request.wait->count() > 0 && !is_own;
  world.log.notice(one.wanted + " is busy" + (waited ? " after " + show(*request.wait) : "") +
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
class Story {
 public:
  Story(const RunRequest& request, const World& world, std::string path)
      : m_request(request), m_world(world), m_path(std::move(path)), m_policy(policy_of(request, world.clock))
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
    auto owned = std::make_unique<Tenure>(m_request, m_world, m_path);
    Tenure& tenure = *owned;
    const auto taking = take_all(m_request, m_world, m_policy, tenure);
    if (!taking) {
      return failed(taking.error());
    }
    if (std::holds_alternative<AllTaken>(*taking)) {
      tell_taken(tenure);
      const RunEnd end = supervise(m_request, m_world, tenure);
      for (Holding& holding : tenure.holdings) {
        holding.rest();  // no thread may run on: what it uses ends with our caller
      }
      [[maybe_unused]] const Tenure* const connected_to_the_end = owned.release();
      return end;
    }
    if (const auto* one_busy = std::get_if<OneBusy>(&*taking)) {
      return busy(m_request, m_world, *one_busy);
    }
    if (const auto* done = std::get_if<AlreadyDone>(&*taking)) {
      m_world.log.detail(printable(m_request.names.begin()->text()) + " has succeeded " + show_roughly(done->ago) +
                             " ago: nothing to do",
                         {.event = "already_done"});
      return ExitWith{0};
    }
    if (const auto* given_back = std::get_if<GivenBack>(&*taking)) {
      return begin_again(*given_back);
    }
    return died_waiting(m_world);
  }

  void tell_taken(const Tenure& tenure) const
  {
    if (m_world.log.verbosity() != Verbosity::verbose) {
      return;
    }
    const auto waited = std::chrono::ceil<Millis>(m_world.clock.now() - m_began);
    for (const Holding& holding : tenure.holdings) {
      m_world.log.detail(printable(holding.name().text()) + " is ours after " + show(waited),
                         {.event = "acquired", .key = holding.name().text(), .fence = holding.fence()});
    }
    m_world.log.detail("running " + printable(shown_command(m_request.argv)), {.event = "started"});
  }

  std::optional<RunEnd> begin_again(const GivenBack& given_back)
  {
    if (!m_policy.patient) {
      return fail(m_request, m_world, {Fault::unfit, given_back.why});
    }
    m_world.log.notice(given_back.why + "; nothing was run yet: beginning again", {.event = "lost"});
    m_server_was_there = true;
    return rest();
  }

  // A server that was never there is not waited for.
  std::optional<RunEnd> failed(const Error& error)
  {
    const bool is_over = m_policy.until && m_world.clock.now() >= *m_policy.until;
    return m_server_was_there && is_passing(error.fault) && !is_over ? rest() : fail(m_request, m_world, error);
  }

  // Never the same for two who were refused together.
  std::optional<RunEnd> rest()
  {
    const Millis moment = pause / 2 + Millis{static_cast<std::int64_t>(m_world.rng.next() % (pause.count() / 2))};
    const Wake wake = m_world.clock.sleep_until(m_world.clock.now() + moment, m_world.signals.stop());
    return wake == Wake::stopped ? std::optional<RunEnd>(died_waiting(m_world)) : std::nullopt;
  }

  const RunRequest& m_request;
  const World& m_world;
  const std::string m_path;
  const Instant m_began = m_world.clock.now();
  const WaitPolicy m_policy;
  bool m_server_was_there = false;
};

}  // namespace

RunEnd run(const RunRequest& request, World world)
{
  const auto path = find_command(request.argv.front(), find_variable(request.environment, "PATH"));
  if (!path) {
    return fail(request, world, path.error());
  }
  world.signals.block();
  return Story(request, world, *path).run();
}

}  // namespace rlock
