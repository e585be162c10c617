// SPDX-License-Identifier: Apache-2.0
#include "sim/injector.h"

#include "sim/records.h"

#include <algorithm>

#include <sys/socket.h>

namespace rlock::sim {

Injector::Injector(World& world, Network& network, Server& server, Hooks hooks)
    : m_world(world), m_network(network), m_server(server), m_hooks(std::move(hooks))
{
}

void Injector::begin(const Fault& fault, Client* of)
{
  if (of == nullptr) {
    return begin_on_server(fault);
  }
  VirtualJob* const job = guarded_job(*of);
  Process* const guardian = job != nullptr ? job->guardian : nullptr;
  switch (fault.kind) {
    case FaultKind::stop_runner: return stop(of->runner, fault);
    case FaultKind::stop_guardian: return stop(guardian, fault);
    case FaultKind::stop_both: stop(of->runner, fault); return stop(guardian, fault);
    case FaultKind::kill_runner: return kill_runner(*of);
    case FaultKind::kill_guardian: return kill_guardian_of(*of);
    case FaultKind::kill_both: kill_guardian_of(*of); return kill_runner(*of);
    case FaultKind::step_wall_clock: return Records::current().step_wall_clock(fault.client, fault.amount);
    case FaultKind::force: return job != nullptr ? m_hooks.force(*of, *job, fault.lasts) : void();
    default: return begin_on_link(fault);
  }
}

void Injector::begin_on_link(const Fault& fault)
{
  Link& link = m_network.link(fault.client);
  const Nanos until = m_world.now() + nanos(fault.lasts);
  switch (fault.kind) {
    case FaultKind::cut_off: link.cut_off_until = until; return;
    case FaultKind::lose_requests: link.loses_requests_until = until; return;
    case FaultKind::lose_answers: link.loses_answers_until = until; return;
    case FaultKind::slow_down:
      link.slow_until = until;
      link.slow_by = nanos(fault.amount);
      return;
    default: return m_network.cut_connections(fault.client);
  }
}

void Injector::begin_on_server(const Fault& fault)
{
  switch (fault.kind) {
    case FaultKind::step_clock: return m_server.step_clock(fault.amount);
    case FaultKind::delete_lock: m_server.execute({"DEL", "stock"}); return;
    case FaultKind::forget_scripts: return m_server.forget_scripts();
    case FaultKind::cut_off_member: return Records::current().members().cut_off(nanos(fault.lasts));
    case FaultKind::stop_leader:
      return Records::current().members().stop_leader(nanos(fault.lasts), nanos(fault.amount));
    case FaultKind::lose_all_data: m_server.forget_data(); break;
    case FaultKind::fail_over: m_server.return_to_remembered_data(); break;
    default: break;
  }
  restart_server(fault.lasts);
}

void Injector::restart_server(Millis lasts)
{
  m_server.forget_scripts();
  m_network.stop_server();
  m_server_up_at = std::max(m_server_up_at, m_world.now() + nanos(lasts));
  m_world.at(m_server_up_at, [this] {
    if (!m_network.is_up() && m_world.now() >= m_server_up_at) {
      m_network.start_server();
    }
  });
}

void Injector::kill_runner(Client& of)
{
  if (of.runner != nullptr) {
    kill(of, *of.runner);
    m_hooks.runner_killed(of);
  }
}

void Injector::kill(const Client& of, Process& runner)
{
  m_world.kill(runner);
  m_network.process_died(runner);
  for (const VirtualJob* job : of.jobs) {
    if (job->runner == &runner && has_guardian(*job) && job->runners_end >= 0) {
      ::shutdown(job->runners_end, SHUT_RDWR);
    }
  }
}

void Injector::kill_guardian_of(const Client& of)
{
  if (VirtualJob* const job = guarded_job(of)) {
    m_network.process_died(*job->guardian);
    kill_guardian(*job);
  }
}

void Injector::stop(Process* process, const Fault& fault)
{
  if (process != nullptr) {
    process->is_stopped = true;
    m_world.after(nanos(fault.lasts), [process] { process->is_stopped = false; });
  }
}

}  // namespace rlock::sim
