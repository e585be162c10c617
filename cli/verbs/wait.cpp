// SPDX-License-Identifier: Apache-2.0
// rlock wait: waits until a lock is free, without taking it.
#include "base/duration.h"
#include "base/log.h"
#include "cli/options/one_lock.h"
#include "cli/options/wait_options.h"
#include "cli/verbs/table.h"
#include "lock/wait_until_free.h"
#include "run/request_policy.h"
#include "run/waiting_line.h"

namespace rlock::cli {
namespace {

struct RawWait {
  RawOneLock lock;
  RawWaitOptions wait_options;
  bool quiet = false;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock wait -k deploy",
    "rlock wait -k stock -w 10s && ./report.sh",
    "rlock wait -n stock || echo busy",
};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "the lock was free a moment ago; use rlock run to hold it while a command runs"},
    ExitLine{ExitCode::busy, "the lock is busy, and the time to wait is over"},
};

RunEnd busy(const LockName& name, Millis waited, const Log& log)
{
  log.notice(busy_text(printable(name.text()), waited, std::nullopt));
  return ended(ExitCode::busy);
}

// Blocks no signals: this process has nothing on the server, so a signal may end it as it ends any program.
Result<RunEnd> execute(const RawWait& raw, const Call& call)
{
  const Result<WaitTimes> wait = resolve_wait_options(raw.wait_options);
  if (!wait) {
    return wait.error();
  }
  const Result<OneLock> lock = open_lock(raw.lock, call);
  if (!lock) {
    return lock.error();
  }
  const OpenedStore& opened = lock->opened;
  const BootClock& clock = *opened.clock;
  SystemRng rng;
  const Log log(raw.quiet ? Verbosity::quiet : Verbosity::normal);
  ServerLine line(clock, log);
  const WaitPolicy policy = wait_policy(wait->lock, opened.timeout, clock, wait->server);
  const Result<WaitResult> result =
      wait_until_free(*opened.store, lock->name, policy, clock, rng, StopToken::never(), line);
  if (!result) {
    return result.error();
  }
  if (*result == WaitResult::free) {
    return ended(ExitCode::ok);
  }
  return busy(lock->name, wait->lock.value_or(Millis{0}), log);
}

void add_wait_verb_options(Options& options, RawWait& raw)
{
  add_key_options(options, raw.lock.keys);
  add_wait_options(options, raw.wait_options);
  options.flag("-q,--quiet", raw.quiet, "do not print that the lock is busy");
  add_server_options(options, raw.lock.server);
}

}  // namespace

const Verb wait_verb{
    .name = "wait",
    .summary = "wait until a lock is free, without taking it",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawWait, add_wait_verb_options, execute>,
};

}  // namespace rlock::cli
