// SPDX-License-Identifier: Apache-2.0
#include "cli/options/run.h"

#include "base/defaults.h"
#include "base/duration.h"

#include <algorithm>

namespace rlock::cli {
namespace {

constexpr DurationRule wait_rule{"--wait", Millis{0}, longest_duration, "10s"};
constexpr DurationRule wait_server_rule{"--wait-server", Millis{0}, longest_duration, "10m"};

}  // namespace

void add_wait_options(Options& options, RawWaitOptions& raw)
{
  options.flag("-n,--no-wait,--nonblock,--nb", raw.no_wait, no_wait_help);
  options.text("-w,--wait,--timeout", raw.wait, "DUR", "give up after DUR; 0: the same as -n (wait for ever)");
  add_wait_server_option(options, raw.wait_server);
}

void add_wait_server_option(Options& options, Text& raw)
{
  options.text("--wait-server", raw, "DUR",
               "try again for DUR when the server cannot be reached or cannot serve, such as during a fail-over; the "
               "time of -w runs meanwhile (0)");
}

Result<Millis> resolve_wait_server(const Text& raw)
{
  return raw ? resolve_duration(*raw, wait_server_rule) : Result(Millis{0});
}

Result<WaitTimes> resolve_wait_options(const RawWaitOptions& raw)
{
  WaitTimes times;
  std::optional<Millis>& wait = times.lock;
  if (raw.wait) {
    const Result<Done> given = assign(resolve_duration(*raw.wait, wait_rule), wait);
    if (!given) {
      return given.error();
    }
  }
  if (raw.no_wait && wait.value_or(Millis{0}) > Millis{0}) {
    return usage("--no-wait and --wait exclude each other (try -w 10s alone)");
  }
  wait = raw.no_wait ? std::optional{Millis{0}} : wait;
  const Result<Done> given = assign(resolve_wait_server(raw.wait_server), times.server);
  return given ? Result(times) : given.error();
}

namespace {

constexpr DurationRule history_rule{"--history", Millis{0}, longest_duration, "30d"};

}  // namespace

void add_history_option(Options& options, Text& raw)
{
  options.text("--history", raw, "DUR",
               {"how long, at least, the server keeps what happened to the lock, for rlock history, status and events: "
                "its last 128 events",
                default_history});
}

Result<std::optional<Millis>> resolve_history(const Text& raw)
{
  if (!raw) {
    return std::optional<Millis>{};
  }
  const Result<Millis> history = resolve_duration(*raw, history_rule);
  // A repeated release looks for the first one in the log.
  return history ? Result(std::optional(std::max(*history, default_history)))
                 : Result<std::optional<Millis>>(history.error());
}

void add_notify_option(Options& options, Text& raw, const char* help) { options.text("--notify", raw, "CMD", help); }

Result<std::string> resolve_notify(const Text& raw)
{
  if (raw && raw->empty()) {
    return usage("--notify: the command is empty (try --notify 'logger \"$RLOCK_MESSAGE\"')");
  }
  return raw.value_or("");
}

}  // namespace rlock::cli
