// SPDX-License-Identifier: Apache-2.0
#include "runner/run.h"

#include "base/duration.h"
#include "base/text.h"
#include "job/command.h"
#include "lock/validity.h"
#include "lock/waiting.h"
#include "runner/environment.h"
#include "runner/identity.h"
#include "runner/supervision.h"
#include "runner/waiting_line.h"

#include <unistd.h>

namespace rlock {
namespace {

RunEnd fail(const World& world, const Error& error)
{
  world.log.error(error.text);
  return ExitWith{static_cast<int>(exit_code_of(error.fault))};
}

std::string joined(const std::vector<std::string>& words)
{
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

LockSpec spec_of(const RunRequest& request)
{
  return {.name = request.name,
          .mode = request.mode,
          .ttl = request.ttl,
          .who = {.host = host_name(),
                  .pid = ::getpid(),
                  .user = user_name(),
                  .command = without_secrets(joined(request.argv)),
                  .label = request.label,
                  .since_ms = wall_clock_ms(),
                  .lease = request.ttl,
                  .automatic = request.automatic},
          .once = request.once};
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

RunEnd busy(const RunRequest& request, const World& world, const Busy& last)
{
  const bool waited = request.wait && request.wait->count() > 0;
  world.log.notice(printable(request.name.text()) + " is busy" +
                   (waited ? " after " + show(*request.wait) : "") +
                   (last.holder ? ", held by " + describe(*last.holder) : ""));
  return ExitWith{request.busy_code};
}

struct Bid {
  LockStore& store;
  const LockSpec& spec;
  const Owner& owner;
  Preparation& preparation;
};

Result<WaitOutcome> acquire(const RunRequest& request, const World& world, const Bid& bid)
{
  WaitingLine line(printable(request.name.text()), world.clock, world.log,
                   [&] { bid.preparation.get_ready(); });
  return wait_and_acquire(bid.store, bid.spec, bid.owner, policy_of(request, world.clock), world.clock,
                          world.rng, world.signals.stop(), line);
}

}  // namespace

RunEnd run(const RunRequest& request, World world)
{
  const auto path = find_command(request.argv.front(), environment_value(request.environment, "PATH"));
  if (!path) {
    return fail(world, path.error());
  }
  world.signals.block();
  auto store = open_store(request.server, world.clock, world.signals.stop());
  if (!store) {
    return store.error().fault == Fault::interrupted ? died_waiting(world) : fail(world, store.error());
  }

  const LockSpec spec = spec_of(request);
  const Owner owner = Owner::fresh(world.rng, ::getpid());
  Preparation preparation(request, world, owner, *path);
  auto outcome = acquire(request, world, {**store, spec, owner, preparation});
  if (!outcome) {
    return fail(world, outcome.error());
  }
  if (const auto* timed_out = std::get_if<TimedOut>(&*outcome)) {
    return busy(request, world, timed_out->last);
  }
  if (const auto* done = std::get_if<AlreadyDone>(&*outcome)) {
    world.log.detail(printable(request.name.text()) + " has succeeded " + show_roughly(done->ago) + " ago: nothing to do");
    return ExitWith{0};
  }
  if (std::holds_alternative<Interrupted>(*outcome)) {
    return died_waiting(world);
  }
  return supervise(request, world,
                   {.store = **store,
                    .spec = spec,
                    .owner = owner,
                    .preparation = preparation,
                    .taken = std::get<Taken>(*std::move(outcome))});
}

}  // namespace rlock
