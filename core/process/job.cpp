// SPDX-License-Identifier: Apache-2.0
#include "process/job.h"

#include "process/guardian.h"
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

// Ctrl-Z signals rlock and the job. rlock stops only when the job has stopped, because the job may ignore the signal.
void block_stops()
{
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGTSTP);
  ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

}  // namespace

Job::~Job()
{
  close_socket();
  reap_guardian();
}

// A guardian that still waits at the gate must not take the closed socket for the death of this process.
void Job::close_socket()
{
  if (m_socket) {
    if (!send_message(m_socket.get(), Command(DiscardJob{})) && m_guardian > 0) {
      ::kill(m_guardian, SIGKILL);
    }
    m_socket.reset();
  }
}

Result<Job> Job::prepare(const JobSpec& spec, const Signals& signals, SharedDeadline& shared_deadline)
{
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return refused("socketpair");
  }
  Fd runners_end(ends[0]);
  Fd guardians_end(ends[1]);
  InheritedPipe inherited_pipe;
  const bool needs_pipe = spec.leftovers == Leftovers::until_pipe_closes;
  const Fd write_end = needs_pipe ? inherited_pipe.open() : Fd();
  if (needs_pipe && !write_end) {
    return refused("pipe");
  }
  Terminal terminal;
  if (terminal.is_shared()) {
    block_stops();
  }
  std::vector<pid_t> earlier_children = own_children();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // the orphans of a killed guardian become children of this process: take_over()

  const pid_t guardian = ::fork();
  if (guardian < 0) {
    return refused("fork");
  }
  if (guardian == 0) {
    const Grouping grouping = terminal.is_shared() ? Grouping::shared : Grouping::own;
    run_guardian({spec, signals, shared_deadline, inherited_pipe, grouping, std::move(guardians_end)});
  }
  return Job(std::move(runners_end), guardian, shared_deadline, std::move(terminal), std::move(earlier_children),
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
  close_socket();  // the guardian may live, if only recv(2) fails
  return std::optional<JobEvent>(GuardianGone{reap_guardian()});
}

// Does not wait for the end of the guardian, which has nothing left to do.
void Job::note(const JobEvent& event)
{
  if (const auto* ended = std::get_if<JobEnd>(&event)) {
    finish(ended->wait_status);
    return;
  }
  const bool never_ran = std::holds_alternative<NotExecuted>(event) || std::holds_alternative<NotStarted>(event) ||
                         std::holds_alternative<GateKilled>(event);
  if (never_ran) {
    finish(std::nullopt);
  }
}

void Job::finish(std::optional<int> wait_status)
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

Result<Done> Job::go(std::string_view late_value)
{
  const bool sent = send_message(m_socket.get(), Command(StartJob{FenceValue(late_value)}));
  return sent || errno == EPIPE ? Result(Done{}) : refused("send");
}

void Job::forward(int signal) { send_message(m_socket.get(), Command(ForwardSignal{signal})); }

void Job::stop(Millis kill_after) { send_message(m_socket.get(), Command(StopOrder{kill_after})); }

void Job::kill(Millis after) { send_message(m_socket.get(), Command(KillOrder{after})); }

void Job::leave() { send_message(m_socket.get(), Command(LeaveProcesses{})); }

void Job::give_to_child()
{
  m_guardian = 0;
  finish(std::nullopt);
}

std::vector<LeftProcess> Job::take_over()
{
  // Without a socket the guardian is gone, and its pid may belong to another process.
  if (m_socket) {
    ::kill(m_guardian, SIGKILL);
  }
  reap_guardian();
  const pid_t main = m_shared_deadline->main_process();
  m_socket.reset();
  std::vector<LeftProcess> left =
      ProcessTree(m_earlier_children, m_shared_deadline->daemons(), main).kill_all(kill_attempt_time);
  if (left.empty()) {
    m_inherited_pipe.kill_all(main);  // orphans that are not descendants of this process
    finish(SIGKILL);                  // a wait status: killed by SIGKILL
  }
  return left;
}

// Returns the wait status; 0 when the guardian was reaped before.
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
