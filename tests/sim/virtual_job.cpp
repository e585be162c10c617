// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual_job.h"

#include "process/guardian.h"
#include "run/environment.h"
#include "sim/virtual_guardian.h"

#include <csignal>
#include <map>
#include <memory>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlock::sim {
namespace {

JobHooks hooks;

// By the number that stands for the pid of the guardian. They live until the hooks are set anew.
std::map<pid_t, std::unique_ptr<VirtualJob>>& jobs()
{
  static std::map<pid_t, std::unique_ptr<VirtualJob>> all;
  return all;
}

}  // namespace

void set_job_hooks(JobHooks new_hooks)
{
  hooks = std::move(new_hooks);
  jobs().clear();
}

void end_job(VirtualJob& job, int status)
{
  if (!job.is_alive) {
    return;
  }
  job.is_alive = false;
  job.status = status;
  job.died = World::current().now();
  ::eventfd_write(job.exit_event, 1);
  hooks.died(job);
}

void begin_job(VirtualJob& job)
{
  job.is_alive = true;
  job.has_run = true;
  job.began = World::current().now();
  World::current().after(nanos(job.behavior.lasts), [&job] { end_job(job, 0); });
  hooks.began(job);
}

// A killed process needs a moment to die.
void kill_job(VirtualJob& job)
{
  World::current().after(50'000, [&job] { end_job(job, SIGKILL); });
}

void kill_guardian(VirtualJob& job)
{
  if (job.guardian->is_dead || World::current().has_ended(*job.guardian)) {
    return;
  }
  World::current().kill(*job.guardian);
  kill_job(job);
  World::current().unwind(*job.guardian);
}

}  // namespace rlock::sim

namespace rlock {

using namespace sim;

// The guardian sees the end of the socket. That it is not waited for makes no difference in virtual time.
Job::~Job()
{
  if (const auto job = jobs().find(m_guardian); m_socket && job != jobs().end()) {
    send_message(m_socket.get(), Command(DiscardJob{}));
    job->second->runners_end = -1;
  }
}

Result<Job> Job::prepare(const JobSpec& spec, const Signals&, SharedDeadline& shared_deadline)
{
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{ErrorCode::os, "socketpair"};
  }
  Process& runner = Fiber::running()->process;
  const auto number = static_cast<pid_t>(jobs().size()) + 1;
  VirtualJob& job = *(jobs()[number] = std::make_unique<VirtualJob>());
  job.client = runner.client;
  job.runner = &runner;
  job.runners_end = ends[0];
  job.behavior = hooks.behavior(runner);
  job.environment = spec.environment;
  const Hold hold = Hold::of_token(environment_value(spec.environment, token_variable));
  job.owner = hold.owner.text();
  job.is_nested = hold.is_nested();
  job.deadline = &shared_deadline;
  const auto socket = std::make_shared<Fd>(ends[1]);
  job.guardian = &World::current().start(
      "guardian", runner.host, runner.client,
      [&job, spec, &shared_deadline, socket] { guard(job, spec, shared_deadline, std::move(*socket)); });
  hooks.prepared(job);
  return Job(Fd(ends[0]), number, shared_deadline, Terminal(), {}, InheritedPipe());
}

Result<Done> Job::go(std::string_view late_value)
{
  send_message(m_socket.get(), Command(StartJob{FenceValue(late_value)}));
  return Done{};
}

bool Job::is_ready()
{
  const auto event = next();
  return m_socket && event && !*event;
}

Result<std::optional<JobEvent>> Job::next()
{
  if (!m_socket) {
    return std::optional<JobEvent>{};
  }
  const auto received = receive_message<JobEvent>(m_socket.get());
  if (std::holds_alternative<NothingYet>(received)) {
    return std::optional<JobEvent>{};
  }
  jobs().at(m_guardian)->runners_end = -1;
  m_socket.reset();
  if (const auto* event = std::get_if<JobEvent>(&received)) {  // each event that a virtual guardian sends is its last
    return std::optional(*event);
  }
  return std::optional<JobEvent>(GuardianGone{SIGKILL});
}

void Job::forward(int) {}

void Job::stop(Millis kill_after) { send_message(m_socket.get(), Command(StopOrder{kill_after})); }

void Job::kill(Millis after) { send_message(m_socket.get(), Command(KillOrder{after})); }

void Job::leave() {}

void Job::give_to_child() {}

std::vector<LeftProcess> Job::take_over()
{
  VirtualJob& job = *jobs().at(m_guardian);
  kill_guardian(job);
  while (job.is_alive) {
    job.runner->host.sleep_until(job.runner->host.now() + std::chrono::microseconds(100), StopToken::never());
  }
  job.runners_end = -1;
  m_socket.reset();
  return {};
}

// A simulated run has no terminal.
Terminal::Terminal() = default;
void Terminal::take_back() const {}
void Terminal::restore_modes() const {}

}  // namespace rlock
