// SPDX-License-Identifier: Apache-2.0
#include "runner/verdict.h"

#include <sys/wait.h>

namespace rlock {
namespace {

Ending with_code(ExitCode code, std::string line)
{
  return {.end = ExitWith{static_cast<int>(code)}, .line = std::move(line)};
}

std::optional<Ending> lost(const Aftermath& after, const std::string& lock)
{
  if (after.verdict) {
    if (const auto* wanted = std::get_if<Wanted>(&*after.verdict)) {
      return with_code(ExitCode::lost, "the lock " + lock + " was force-unlocked by " + wanted->by);
    }
    if (const auto* gone = std::get_if<Gone>(&*after.verdict)) {
      return with_code(ExitCode::lost, "the lock " + lock + " was lost: " + gone->why);
    }
  }
  if (after.release) {
    const std::string why =
        after.release->forced ? "force-unlocked by " + after.release->forced->by : after.release->what;
    return with_code(ExitCode::lost, "the lock " + lock + " was lost: " + why);
  }
  const bool over = after.job && after.job->why == Stopped::lifeline;
  if (after.automatic && (over || after.verdict)) {
    const auto* unsure = after.verdict ? std::get_if<Unsure>(&*after.verdict) : nullptr;
    return with_code(ExitCode::lost, "the lock " + lock + " was lost: it could not be renewed in time" +
                                         (unsure != nullptr ? " (" + unsure->why + ")" : ""));
  }
  return std::nullopt;
}

}  // namespace

bool succeeded(const Ended& job) { return job.why == Stopped::none && job.wait_status == 0; }

Ending ending(const Aftermath& after, const std::string& lock)
{
  if (auto end = lost(after, lock)) {
    return *std::move(end);
  }
  if (!after.job) {
    return with_code(ExitCode::os, "the guardian process was killed: the job was stopped and " + lock +
                                       " released");
  }
  if (after.job->why == Stopped::lifeline) {
    return with_code(ExitCode::time_over, "the job was stopped: its lease of " + lock + " was over");
  }
  if (after.job->why == Stopped::max_runtime) {
    return with_code(ExitCode::time_over, "the job was stopped: its --max-runtime was over");
  }
  const int status = after.job->wait_status;
  if (WIFSIGNALED(status)) {
    return {.end = DieOf{WTERMSIG(status)}, .line = {}};
  }
  return {.end = ExitWith{WEXITSTATUS(status)}, .line = {}};
}

}  // namespace rlock
