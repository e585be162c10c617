// SPDX-License-Identifier: Apache-2.0
// rlock wait: until the lock is free, without taking it.
#include "base/duration.h"
#include "base/log.h"
#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/options/wait_options.h"
#include "cli/verbs/table.h"
#include "lock/wait_until_free.h"
#include "run/waiting_line.h"

#include <array>

namespace rlock::cli {
namespace {

struct RawWait {
  RawKeys keys;
  RawServer server;
  RawWaitOptions wait_options;
  bool quiet = false;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock wait -k deploy",
    "rlock wait -k stock -w 10s && ./report.sh",
    "rlock wait -n stock || echo busy",
};

constexpr std::array exits{
    ExitLine{"0", "it was free a moment ago; whoever must be alone takes it with run"},
    usage_exit,
    server_exit,
    ExitLine{"75", "busy, and the time is over"},
    refused_exit,
    config_exit,
};

RunEnd busy(const LockName& name, Millis waited, const Log& log)
{
  log.notice(busy_text(printable(name.text()), waited, std::nullopt));
  return ended(ExitCode::busy);
}

// Nothing of ours is on the server: a signal may end us as it ends any program.
Result<RunEnd> execute(const RawWait& raw, const Call& call)
{
  const Result<LockName> name = resolve_key(raw.keys, call.operands);
  if (!name) {
    return name.error();
  }
  const Result<std::optional<Millis>> wait = resolve_wait_options(raw.wait_options);
  if (!wait) {
    return wait.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }

  const BootClock& clock = *opened->clock;
  SystemRng rng;
  const auto until = *wait ? std::optional{clock.now() + **wait} : std::nullopt;
  const Result<WaitResult> freedom =
      wait_until_free(*opened->store, *name, until, opened->timeout, clock, rng, StopToken::never());
  if (!freedom) {
    return freedom.error();
  }
  if (*freedom == WaitResult::free) {
    return ended(ExitCode::ok);
  }
  return busy(*name, wait->value_or(Millis{0}), Log(raw.quiet ? Verbosity::quiet : Verbosity::normal));
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawWait>();
  add_key_options(options, raw->keys);
  add_wait_options(options, raw->wait_options);
  options.flag("-q,--quiet", raw->quiet, "do not say that it is busy");
  add_server_options(options, raw->server);
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

const Verb wait_verb{
    .name = "wait",
    .summary = "wait until a lock is free, without taking it",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
