// SPDX-License-Identifier: Apache-2.0
#include "run/notify_run.h"

#include "run/notify.h"
#include "run/outcome.h"

namespace rlock {

void notify_of(const RunRequest& request, const RunContext& context, const LockSet* held, const RunReport& report,
               Millis duration, Signals* heeded, const std::function<void(const std::string&)>& failed)
{
  if (request.notify.empty() || report.outcome.empty()) {
    return;
  }
  auto environment =
      held != nullptr
          ? notify_environment(request.environment,
                               {.held = held->held_locks(), .lease = request.ttl, .server = request.server.for_job()},
                               held->sessions.front().fence())
          : notify_environment(request.environment, *request.names.begin(), request.server.for_job());
  notify(request.notify, std::move(environment),
         {.outcome = report.outcome,
          .exit_code = exit_code_of(report.end),
          .duration = duration,
          .message = report.message},
         context.clock, context.signals, heeded, failed);
}

}  // namespace rlock
