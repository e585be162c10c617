// SPDX-License-Identifier: Apache-2.0
#include "process/job.h"

#include "process/guardian.h"
#include "process/guardian_messages.h"
#include "process/proc.h"
#include "process/process_tree.h"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
namespace {

Error refused(const char* what)
{
  const std::string reason = std::generic_category().message(errno);
  return {ErrorCode::os, std::string("cannot start the job: ") + what + ": " + reason};
}

// Ctrl-Z reaches us as well as the job. Whether we stop is for the job to say, which may ignore it.
void block_stops()
{
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGTSTP);
  ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

}  // namespace

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

Job::~Job()
{
  m_socket.reset();
  reap_guardian();
}

Result<Job> Job::prepare(const JobSpec& spec, const Signals& signals, SharedDeadline& shared_deadline)
{
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return refused("socketpair");
  }
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  InheritedPipe inherited_pipe;
  const bool pipe_is_held = spec.leftovers == Leftovers::until_pipe_closes;
  const Fd write_end = pipe_is_held ? inherited_pipe.open() : Fd();
  if (pipe_is_held && !write_end) {
    return refused("pipe");
  }
  Terminal terminal;
  if (terminal.is_shared()) {
    block_stops();
  }
  std::vector<pid_t> earlier_children = own_children();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // the orphans of a killed guardian come to us: take_over()

  const pid_t guardian = ::fork();
  if (guardian < 0) {
    return refused("fork");
  }
  if (guardian == 0) {
    const Grouping grouping = terminal.is_shared() ? Grouping::shared : Grouping::own;
    run_guardian({spec, signals, shared_deadline, inherited_pipe, grouping, std::move(theirs)});
  }
  return Job(std::move(ours), guardian, shared_deadline, std::move(terminal), std::move(earlier_children),
             std::move(inherited_pipe));
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
  if (const auto* event = std::get_if<JobEvent>(&received)) {
    note(*event);
    return std::optional(*event);
  }
  m_socket.reset();
  return std::optional<JobEvent>(GuardianGone{reap_guardian()});
}

// The guardian's own end is not waited for here: it has nothing left to do, and the runner has.
void Job::note(const JobEvent& event)
{
  if (const auto* ended = std::get_if<Ended>(&event)) {
    part(ended->wait_status);
    return;
  }
  const bool never_ran = std::holds_alternative<NotExecuted>(event) || std::holds_alternative<NotStarted>(event) ||
                         std::holds_alternative<GateKilled>(event);
  if (never_ran) {
    part(std::nullopt);
  }
}

void Job::part(std::optional<int> wait_status)
{
  m_socket.reset();
  m_terminal.take_back();
  if (wait_status && WIFSIGNALED(*wait_status)) {
    m_terminal.restore_modes();
  }
}

bool Job::is_ready()
{
  const auto event = next();
  return m_socket && event && !*event;
}

void Job::go(std::string_view late_value) { send_message(m_socket.get(), Command(StartJob{LateValue(late_value)})); }

void Job::forward(int signal) { send_message(m_socket.get(), Command(ForwardSignal{signal})); }

void Job::stop(Millis kill_after) { send_message(m_socket.get(), Command(StopOrder{kill_after})); }

void Job::leave() { send_message(m_socket.get(), Command(LeaveProcesses{})); }

void Job::hand_over()
{
  m_guardian = 0;
  part(std::nullopt);
}

std::vector<pid_t> Job::take_over()
{
  if (m_socket) {  // else it is gone already, and in a process that it is no child of its number may be another's
    ::kill(m_guardian, SIGKILL);
  }
  reap_guardian();
  const pid_t main = m_shared_deadline->main_process();
  std::vector<pid_t> still_run = ProcessTree(m_earlier_children, main).kill_all();
  m_inherited_pipe.kill_all(main);  // orphans whose ancestor we are not
  part(SIGKILL);                    // a wait status: died of it
  return still_run;
}

// 0 when that was done before.
int Job::reap_guardian()
{
  int status = 0;
  if (m_guardian != 0) {
    while (::waitpid(m_guardian, &status, 0) < 0 && errno == EINTR) {
    }
    m_guardian = 0;
  }
  return status;
}

}  // namespace rlock
