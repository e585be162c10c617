// SPDX-License-Identifier: Apache-2.0
#include "process/not_killed.h"

#include "base/text.h"
#include "process/proc.h"

namespace rlock {

std::vector<LeftProcess> NotKilledReports::due(const std::vector<LeftProcess>& left, Instant now)
{
  std::vector<LeftProcess> named;
  for (const LeftProcess& process : left) {
    const auto [next, is_new] = m_next.try_emplace(process.pid, process.refused ? now : now + slow_death);
    if (now >= m_minute_over) {
      m_minute_over = now + not_killed_period;
      m_named = 0;
    }
    if (now >= next->second && m_named < most_named) {
      ++m_named;
      next->second = now + not_killed_period;
      named.push_back(process);
    }
  }
  return named;
}

namespace {

// "process 4711 (dd)"
std::string shown(pid_t pid)
{
  const std::string name = command_name(pid);
  return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + printable(name) + ")");
}

std::string how_to_end(pid_t pid) { return "end it as root with: kill " + std::to_string(pid); }

}  // namespace

std::string not_signalled_text(pid_t pid)
{
  return "cannot signal " + shown(pid) + " of the job: it runs as another user; " + how_to_end(pid);
}

std::string not_killed_text(const LeftProcess& process)
{
  if (process.pid == 0) {
    return "a process of the job that rlock cannot see still runs; rlock waits for its end";
  }
  if (process.refused) {
    return shown(process.pid) + " of the job still runs as another user; rlock waits for its end; " +
           how_to_end(process.pid);
  }
  const pid_t tracer = tracer_of(process.pid);
  const std::string reason = process.state == 'D' ? "it waits for a device or a file server"
                             : tracer != 0        ? shown(tracer) + " traces it"
                                                  : "";
  return shown(process.pid) + " of the job cannot be killed (state " + std::string(1, process.state) +
         (reason.empty() ? "" : ": " + reason) + "); rlock waits for its end";
}

}  // namespace rlock
