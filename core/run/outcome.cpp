// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

#include <sys/wait.h>

namespace rlock {
namespace {

Ending with_code(ExitCode code, std::string event, std::string line)
{
  return {.end = ExitWith{static_cast<int>(code)}, .line = std::move(line), .event = std::move(event), .lock = {}};
}

Ending lost_for(const Verdict& verdict, const LockFate& fate, bool forced)
{
  Ending end = with_code(ExitCode::lost, forced ? "forced" : "lost", words_for(verdict, printable(fate.lock)));
  end.lock = fate.lock;
  return end;
}

// How surely it was lost: the less the surer.
int doubt(const LockFate& fate)
{
  if (fate.verdict && !std::holds_alternative<Unsure>(*fate.verdict)) {
    return 0;
  }
  return fate.release ? 1 : fate.verdict ? 2 : 3;
}

const LockFate& worst(const std::vector<LockFate>& fates)
{
  return *std::min_element(fates.begin(), fates.end(), [](const LockFate& a, const LockFate& b) {
    return std::pair(doubt(a), a.valid_until) < std::pair(doubt(b), b.valid_until);
  });
}

std::string names_of(const std::vector<LockFate>& fates)
{
  std::string names;
  for (const LockFate& fate : fates) {
    names += (names.empty() ? "" : ", ") + printable(fate.lock);
  }
  return names;
}

// Why renewals failed; empty: they did not.
const std::string& trouble_of(const LockFate& fate)
{
  const auto* unsure = fate.verdict ? std::get_if<Unsure>(&*fate.verdict) : nullptr;
  return unsure != nullptr ? unsure->why : fate.trouble;
}

// A lease that was not renewed has expired by the time of the release: that it is gone then is no reason.
std::string reason_for(const LockFate& fate, const NotOurs& found)
{
  if (found.forced) {
    return "force-unlocked by " + printable(found.forced->by);
  }
  const std::string& trouble = trouble_of(fate);
  return trouble.empty() ? found.what : trouble;
}

std::optional<Ending> lost(const Aftermath& after)
{
  const LockFate& fate = worst(after.locks);
  if (fate.verdict && !std::holds_alternative<Unsure>(*fate.verdict)) {
    return lost_for(*fate.verdict, fate, std::holds_alternative<Wanted>(*fate.verdict));
  }
  if (fate.release) {
    return lost_for(Gone{reason_for(fate, *fate.release)}, fate, fate.release->forced.has_value());
  }
  const bool over = after.job && after.job->why == Stopped::lifeline;
  if (after.automatic && (over || fate.verdict)) {
    return lost_for(fate.verdict.value_or(Unsure{fate.trouble}), fate, false);
  }
  return std::nullopt;
}

Ending not_stopped(const Aftermath& after)
{
  const bool time_over = after.job && (after.job->why == Stopped::lifeline || after.job->why == Stopped::max_runtime);
  return with_code(time_over ? ExitCode::time_over : ExitCode::os, "not_stopped",
                   "the job could not be stopped: a process that runs as another user is left; " +
                       names_of(after.locks) + " stays locked until the ttl is over");
}

}  // namespace

bool succeeded(const Ended& job) { return job.why == Stopped::none && job.wait_status == 0; }

std::string words_for(const Verdict& verdict, const std::string& lock)
{
  if (const auto* wanted = std::get_if<Wanted>(&verdict)) {
    return "the lock " + lock + " was force-unlocked by " + printable(wanted->by);
  }
  if (const auto* gone = std::get_if<Gone>(&verdict)) {
    return "the lock " + lock + " was lost: " + gone->why;
  }
  const std::string& why = std::get<Unsure>(verdict).why;
  return "the lock " + lock + " was lost: " + (why.empty() ? "it could not be renewed in time" : why);
}

ExitWith failure(Fault fault, Manners manners)
{
  const bool no_command = fault == Fault::not_found || fault == Fault::not_executable;
  const ExitCode code = manners == Manners::flock && no_command ? ExitCode::unavailable : exit_code_of(fault);
  return {static_cast<int>(code)};
}

Ending ending(const Aftermath& after)
{
  if (auto end = lost(after)) {
    return *std::move(end);
  }
  if (after.still_runs) {
    return not_stopped(after);
  }
  if (!after.job) {
    return with_code(ExitCode::os, "guardian_killed",
                     "the guardian process was killed: the job was stopped and " + names_of(after.locks) + " released");
  }
  if (after.job->why == Stopped::lifeline) {
    return with_code(ExitCode::time_over, "time_over",
                     "the job was stopped: its lease of " + names_of(after.locks) + " was over");
  }
  if (after.job->why == Stopped::max_runtime) {
    return with_code(ExitCode::time_over, "time_over", "the job was stopped: its --max-runtime was over");
  }
  const int status = after.job->wait_status;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const bool as_flock = after.manners == Manners::flock;
    return {
        .end = as_flock ? RunEnd{ExitWith{128 + signal}} : RunEnd{DieOf{signal}}, .line = {}, .event = {}, .lock = {}};
  }
  return {.end = ExitWith{WEXITSTATUS(status)}, .line = {}, .event = {}, .lock = {}};
}

}  // namespace rlock
