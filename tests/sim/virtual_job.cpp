// SPDX-License-Identifier: Apache-2.0
#include "sim/virtual_job.h"

#include "process/guardian_messages.h"

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

std::string value_in(const std::vector<std::string>& environment, std::string_view name)
{
  for (const std::string& variable : environment) {
    if (variable.starts_with(name) && variable.size() > name.size() && variable[name.size()] == '=') {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
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

// The guardian of one job: guard_job of process/guardian.cpp and GuardianLoop, with a job that is no process.
class Guardian {
 public:
  Guardian(VirtualJob& job, JobSpec spec, SharedDeadline& deadline, Fd socket)
      : m_job(job),
        m_spec(std::move(spec)),
        m_deadline(deadline),
        m_socket(std::move(socket)),
        m_clock(job.guardian->host),
        m_exit(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
  {
    m_job.exit_event = m_exit.get();
  }
  ~Guardian() { m_job.exit_event = -1; }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  void run()
  {
    const auto fence = await_start();
    if (!fence) {
      return;
    }
    if (!may_start(m_spec, m_clock.now(), m_deadline.valid_until())) {
      send_message(m_socket.get(), JobEvent(NotStarted{}));
      return;
    }
    m_job.fence = std::stoull(fence->c_str());
    set_timer();
    begin_job(m_job);
    const Instant began = m_clock.now();
    m_state = started(m_spec, began);
    while (m_state.phase != Phase::over) {
      wait();
      handle_end_of_job();
      handle_command();
      advance(TimePassed{});
    }
    if (m_runner_is_gone && m_spec.release_for_runner) {
      m_spec.release_for_runner(began);
    }
  }

 private:
  std::optional<LateValue> await_start()
  {
    for (;;) {
      pollfd runner{m_socket.get(), POLLIN, 0};
      ::poll(&runner, 1, -1);
      const auto received = receive_message<Command>(m_socket.get());
      if (std::holds_alternative<PeerGone>(received)) {
        return std::nullopt;
      }
      const auto* const command = std::get_if<Command>(&received);
      if (const auto* start = command != nullptr ? std::get_if<StartJob>(command) : nullptr) {
        return start->value;
      }
    }
  }

  void wait()
  {
    set_timer();
    pollfd sources[] = {{m_socket.get(), POLLIN, 0}, {m_exit.get(), POLLIN, 0}, {m_deadline.moved_fd(), POLLIN, 0}};
    const Nanos due = m_job.guardian->host.true_time(next_due(m_spec, m_state, m_deadline.valid_until()));
    World::current().block(sources, 3, due);
    m_deadline.note_move();
  }

  // The kernel kills the guardian then, unless it sets the timer anew.
  void set_timer()
  {
    const Instant end = m_deadline.valid_until();
    const Instant due = end == far_future ? far_future : end - m_spec.last_resort_lead;
    const std::uint64_t setting = ++m_job.timer;
    World::current().at(m_job.guardian->host.true_time(due), [&job = m_job, setting] {
      if (job.timer == setting) {
        kill_guardian(job);
      }
    });
  }

  void handle_end_of_job()
  {
    if (!m_job.is_alive && !m_main_ended) {
      m_main_ended = true;
      advance(MainEnded{Others::none});
    }
  }

  void handle_command()
  {
    const auto received = receive_message<Command>(m_socket.get());
    if (std::holds_alternative<PeerGone>(received)) {
      m_runner_is_gone = m_state.phase != Phase::over;
      advance(RunnerGone{});
    } else if (const auto* command = std::get_if<Command>(&received)) {
      if (const auto* order = std::get_if<StopOrder>(command)) {
        advance(*order);
      }
    }
  }

  void advance(const StopEvent& event)
  {
    const StopStep step = next_step(m_spec, m_state, event, m_clock.now(), m_deadline.valid_until());
    m_state = step.state;
    switch (step.action) {
      case StopAction::signal:
        if (!m_job.behavior.ignores_term) {
          World::current().after(1'000'000, [&job = m_job] { end_job(job, SIGTERM); });
        }
        return;
      case StopAction::kill:
        kill_job(m_job);
        while (m_job.is_alive) {
          m_clock.sleep_until(m_clock.now() + std::chrono::microseconds(100), StopToken::never());
        }
        return advance(TreeEmpty{});
      case StopAction::finish:
        ++m_job.timer;
        send_message(m_socket.get(),
                     JobEvent(Ended{.wait_status = m_job.status, .why = m_state.why, .killed = m_state.killed}));
        return;
      default: return;
    }
  }

  VirtualJob& m_job;
  const JobSpec m_spec;
  SharedDeadline& m_deadline;
  const Fd m_socket;
  const Host& m_clock;
  const Fd m_exit;
  StopState m_state;
  bool m_main_ended = false;
  bool m_runner_is_gone = false;
};

}  // namespace

void set_job_hooks(JobHooks new_hooks)
{
  hooks = std::move(new_hooks);
  jobs().clear();
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

Job::Job(Fd socket, pid_t guardian, const SharedDeadline& shared_deadline, Terminal terminal,
         std::vector<pid_t> earlier_children, InheritedPipe inherited_pipe)
    : m_socket(std::move(socket)),
      m_guardian(guardian),
      m_shared_deadline(&shared_deadline),
      m_terminal(std::move(terminal)),
      m_earlier_children(std::move(earlier_children)),
      m_inherited_pipe(std::move(inherited_pipe))
{
}

Job::Job(Job&& other) noexcept
    : m_socket(std::move(other.m_socket)),
      m_guardian(std::exchange(other.m_guardian, 0)),
      m_shared_deadline(other.m_shared_deadline),
      m_terminal(std::move(other.m_terminal)),
      m_earlier_children(std::move(other.m_earlier_children)),
      m_inherited_pipe(std::move(other.m_inherited_pipe))
{
}

// The guardian sees the end of the socket. That it is not waited for makes no difference in virtual time.
Job::~Job()
{
  if (const auto job = jobs().find(m_guardian); m_socket && job != jobs().end()) {
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
  job.behavior = hooks.behavior(runner.client);
  job.owner = value_in(spec.environment, "RLOCK_TOKEN");
  job.deadline = &shared_deadline;
  const auto socket = std::make_shared<Fd>(ends[1]);
  job.guardian = &World::current().start(
      "guardian", runner.host, runner.client,
      [&job, spec, &shared_deadline, socket] { Guardian(job, spec, shared_deadline, std::move(*socket)).run(); });
  hooks.prepared(job);
  return Job(Fd(ends[0]), number, shared_deadline, Terminal(), {}, InheritedPipe());
}

Result<Done> Job::go(std::string_view late_value)
{
  send_message(m_socket.get(), Command(StartJob{LateValue(late_value)}));
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

void Job::leave() {}

void Job::give_to_child() {}

std::vector<pid_t> Job::take_over()
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
