// SPDX-License-Identifier: Apache-2.0
#include "run/notify.h"

#include <utility>
#include <vector>
#include "base/duration.h"
#include "base/shown_time.h"
#include "base/text.h"
#include "process/shell.h"
#include "run/environment.h"
#include "run/verdict.h"

namespace rlock {
namespace {

constexpr Millis time_limit{30'000};

// "nightly: failed with exit code 3 after 12m 4s"
std::string message_of(const RunNews& news, const std::vector<std::string>& environment)
{
  if (!news.message.empty()) {
    return news.message;
  }
  const std::string exit =
      news.exit_code && *news.exit_code != 0 ? " with exit code " + std::to_string(*news.exit_code) : "";
  return std::string(environment_value(environment, key_variable)) + ": " + news.outcome + exit + " after " +
         show_roughly(news.duration);
}

// The variables of the job.
std::vector<std::string> environment_after(const RunRequest& request, const LockSet& held)
{
  auto environment =
      job_environment(request.environment, {.held = held.held_locks(), .server = request.server.for_job()});
  unset_variable(environment, held_locks_variable);
  if (const auto inherited = find_variable(request.environment, held_locks_variable)) {
    set_variable(environment, held_locks_variable, std::string(*inherited));
  }
  if (const std::uint64_t fence = held.sessions.front().fence(); fence > 0) {
    set_variable(environment, fence_variable, std::to_string(fence));
  }
  return environment;
}

std::vector<std::string> environment_without_lock(const RunRequest& request)
{
  auto environment = request.environment;
  for (const std::string_view of_outer_lock :
       {token_variable, lease_variable, shard_variable, shard_name_variable, fence_variable}) {
    unset_variable(environment, of_outer_lock);
  }
  set_variable(environment, key_variable, request.name().text());
  set_server(environment, request.server.for_job());
  return environment;
}

}  // namespace

RunNews news_of(const RunReport& report, Millis duration)
{
  return {.outcome = report.outcome,
          .exit_code = exit_code_of(report.end),
          .duration = duration,
          .message = report.message,
          .holder = report.holder};
}

void notify(const RunRequest& request, const RunContext& context, const LockSet* held, const RunNews& news,
            Signals* heeded, const std::function<void(const std::string&)>& failed)
{
  if (request.notify.empty() || news.outcome.empty()) {
    return;
  }
  auto environment = held != nullptr ? environment_after(request, *held) : environment_without_lock(request);
  const std::string message = message_of(news, environment);
  const std::string command = held != nullptr ? held->sessions.front().spec().who.command : shown_command(request.argv);
  set_variable(environment, "RLOCK_OUTCOME", news.outcome);
  set_variable(environment, "RLOCK_EXIT_CODE", news.exit_code ? std::to_string(*news.exit_code) : "");
  set_variable(environment, "RLOCK_DURATION_MS", std::to_string(news.duration.count()));
  set_variable(environment, "RLOCK_MESSAGE", without_controls(message));
  set_variable(environment, "RLOCK_STARTED", iso_utc(wall_clock_ms() - news.duration.count()).value_or(""));
  set_variable(environment, "RLOCK_ATTEMPT", std::to_string(held != nullptr ? held->attempt : 1));
  set_variable(environment, "RLOCK_HOST", without_controls(host_name()));
  set_variable(environment, "RLOCK_HOLDER", without_controls(news.holder));
  set_variable(environment, "RLOCK_COMMAND", without_controls(command));
  set_variable(environment, "RLOCK_LABEL", without_controls(request.label));
  const ShellEnd end =
      run_in_shell({.line = request.notify, .environment = std::move(environment), .time_limit = time_limit},
                   context.clock, context.signals, heeded);
  if (end.how != ShellEnd::How::exited || end.number != 0) {
    failed("--notify: the command " + describe(end));
  }
}

}  // namespace rlock
