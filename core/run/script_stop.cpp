// SPDX-License-Identifier: Apache-2.0
#include "run/script_stop.h"

#include <algorithm>
#include <vector>
#include "run/left_keeper.h"

namespace rlock {
namespace {

constexpr Millis look_pause{100};  // between two searches for processes of the script, at least
constexpr int look_share = 20;     // the searches use one part of so many of the keeper's time

JobSpec script_as_job(const RunRequest& request)
{
  JobSpec job{};
  job.stop_signal = request.stop_signal;
  job.kill_after = request.kill_after;
  job.leftovers = request.leftovers;
  return job;
}

}  // namespace

ScriptStop::ScriptStop(const RunRequest& request, const PidFd& script, const ScriptPipe& pipe,
                       const SharedDeadline& deadline, const Clock& clock)
    : m_request(request),
      m_deadline(deadline),
      m_clock(clock),
      m_script(request.watched->pid, script, pipe),
      m_job(script_as_job(request))
{
}

void ScriptStop::script_ended()
{
  m_stop.phase = Phase::running;
  advance(MainEnded{m_script.is_empty() ? Others::none : Others::some});
}

void ScriptStop::stop(Millis kill_after)
{
  m_stop.phase = is_over() ? Phase::running : m_stop.phase;
  advance(StopOrder{kill_after});
}

Instant ScriptStop::due() const { return std::min({next_due(m_stop, times()), m_look_at, m_kill_again_at}); }

void ScriptStop::work()
{
  look();
  advance(TimePassed{});
  if (m_stop.phase == Phase::killing && m_clock.now() >= m_kill_again_at) {
    kill();
  }
}

// On a busy host, or one with many processes, KILL begins so much earlier as its search for them takes.
StopTimes ScriptStop::times() const
{
  if (m_request.on_lost != OnLost::stop && m_stop.why != Stopped::order) {
    return never_stopped;
  }
  StopTimes times = m_deadline.times();
  times.kill -= m_search_time;
  times.signal = std::min(times.signal, times.kill);
  return times;
}

// Searches /proc, which takes long on a host with many processes.
void ScriptStop::look()
{
  const Instant began = m_clock.now();
  if (is_over() || began < m_look_at) {
    return;
  }
  if (m_script.is_empty()) {
    advance(TreeEmpty{});
  }
  const Instant now = m_clock.now();
  m_search_time = now - began;
  m_look_at = now + std::max<Instant::duration>(look_pause, m_search_time * look_share);
}

void ScriptStop::advance(const StopEvent& event)
{
  const StopStep step = next_step(m_job, m_stop, event, m_clock.now(), times());
  m_stop = step.state;
  if (step.action == StopAction::signal || step.action == StopAction::stop_leftovers) {
    m_script.stop(m_request.stop_signal);
    look_soon();
  } else if (step.action == StopAction::kill) {
    kill();
  }
}

void ScriptStop::kill()
{
  const std::vector<LeftProcess> left = m_script.kill_all(kill_attempt_time);
  m_kill_again_at = m_clock.now() + kill_attempt_time;
  if (left.empty()) {
    return advance(TreeEmpty{});
  }
  for (const LeftProcess& process : m_not_killed.due(left, m_clock.now())) {
    write_to_syslog(not_killed_text(process));
  }
}

}  // namespace rlock
