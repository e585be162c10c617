// SPDX-License-Identifier: Apache-2.0
#include "run/notify.h"

#include "base/duration.h"
#include "base/text.h"
#include "lock/held_locks.h"
#include "process/shell.h"

#include <utility>

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

}  // namespace

std::vector<std::string> notify_environment(const std::vector<std::string>& inherited, const JobLocks& locks,
                                            std::uint64_t fence)
{
  auto environment = job_environment(inherited, locks);
  unset_variable(environment, held_locks_variable);
  if (const auto held = find_variable(inherited, held_locks_variable)) {
    set_variable(environment, held_locks_variable, std::string(*held));
  }
  if (fence > 0) {
    set_variable(environment, fence_variable, std::to_string(fence));
  }
  return environment;
}

std::vector<std::string> notify_environment(const std::vector<std::string>& inherited, const LockName& wanted,
                                            const JobServer& server)
{
  auto environment = inherited;
  for (const std::string_view of_outer_lock : {token_variable, lease_variable, shard_variable, fence_variable}) {
    unset_variable(environment, of_outer_lock);
  }
  set_variable(environment, key_variable, wanted.text());
  set_server(environment, server);
  return environment;
}

void notify(const std::string& command, std::vector<std::string> environment, const RunNews& news, const Clock& clock,
            const Signals& inherited, Signals* heeded, const std::function<void(const std::string&)>& failed)
{
  const std::string message = message_of(news, environment);
  set_variable(environment, "RLOCK_OUTCOME", news.outcome);
  set_variable(environment, "RLOCK_EXIT_CODE", news.exit_code ? std::to_string(*news.exit_code) : "");
  set_variable(environment, "RLOCK_DURATION_MS", std::to_string(news.duration.count()));
  set_variable(environment, "RLOCK_MESSAGE", without_controls(message));
  const ShellEnd end = run_in_shell({.line = command, .environment = std::move(environment), .time_limit = time_limit},
                                    clock, inherited, heeded);
  if (end.how != ShellEnd::How::exited || end.number != 0) {
    failed("--notify: the command " + describe(end));
  }
}

}  // namespace rlock
