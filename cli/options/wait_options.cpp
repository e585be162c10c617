// SPDX-License-Identifier: Apache-2.0
#include "cli/options/wait_options.h"

#include "base/duration.h"

namespace rlock::cli {
namespace {

constexpr DurationRule wait_rule{"--wait", Millis{0}, longest_duration, "10s"};

}  // namespace

void add_wait_options(Options& options, RawWaitOptions& raw)
{
  options.flag("-n,--no-wait,--nonblock,--nb", raw.no_wait, "give up at once when the lock is busy");
  options.text("-w,--wait,--timeout", raw.wait, "DUR", "give up after DUR; 0: the same as -n (wait for ever)");
}

Result<std::optional<Millis>> resolve_wait_options(const RawWaitOptions& raw)
{
  std::optional<Millis> wait;
  if (raw.wait) {
    const Result<Done> given = assign(resolve_duration(*raw.wait, wait_rule), wait);
    if (!given) {
      return given.error();
    }
  }
  if (raw.no_wait && wait.value_or(Millis{0}) > Millis{0}) {
    return usage("--no-wait and --wait exclude each other (try -w 10s alone)");
  }
  return raw.no_wait ? std::optional{Millis{0}} : wait;
}

}  // namespace rlock::cli
