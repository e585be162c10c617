// SPDX-License-Identifier: Apache-2.0
#include "support/job_runner.h"
#include "support/text_file.h"
#include "support/wait_until.h"

#include "base/clock.h"
#include "process/process_tree.h"

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock::test {
namespace {

constexpr Millis await_limit{5000};

std::string show_status(int status)
{
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "died of " + signal_name(WTERMSIG(status));
}

std::string show_ended(const JobEnd& ended)
{
  const char* const reasons[] = {"", " by lease_end", " by max_runtime", " by order", " by runner_gone"};
  return show_status(ended.wait_status) + reasons[static_cast<int>(ended.why)] + (ended.killed ? " killed" : "");
}

bool readable(int fd)
{
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(await_limit.count())) == 1;
}

}  // namespace

bool wait_until(const std::function<bool()>& condition)
{
  for (Millis waited{0}; waited < await_limit; waited += Millis{10}) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(Millis{10});
  }
  return condition();
}

pid_t pid_from(const std::filesystem::path& file)
{
  wait_until([&] { return text_of(file).ends_with("\n"); });
  return std::atoi(text_of(file).c_str());
}

bool is_alive(pid_t pid)
{
  const auto process = read_process(pid);
  return process && !process->is_zombie();
}

JobSpec script(const std::filesystem::path& dir, const std::string& text)
{
  JobSpec spec;
  spec.path = "/bin/sh";
  spec.argv = {"sh", "-c", text, dir};
  spec.environment = {"PATH=/usr/bin:/bin"};
  return spec;
}

std::string show(const JobEvent& event)
{
  struct Show {
    std::string operator()(const NotExecuted& e) const { return "errno " + std::to_string(e.error); }
    std::string operator()(const NotStarted&) const { return "not started"; }
    std::string operator()(const GateKilled&) const { return "gate killed"; }
    std::string operator()(const Paused& e) const { return "paused by " + signal_name(e.signal); }
    std::string operator()(const LeftBehind& e) const { return "left " + std::to_string(e.count); }
    std::string operator()(const NotSignalled&) const { return "not signalled"; }
    std::string operator()(const LastResortRefused&) const { return "last resort refused"; }
    std::string operator()(const StillKilling&) const { return "still killing"; }
    std::string operator()(const NotKilled&) const { return "not killed"; }
    std::string operator()(const PipeHoldersLeft& e) const { return "lives on after " + std::to_string(e.wait_status); }
    std::string operator()(const JobEnd& e) const { return show_ended(e); }
    std::string operator()(const GuardianGone&) const { return "guardian gone"; }
  };
  return std::visit(Show{}, event);
}

// Without StillKilling, which a guardian also says when a busy machine lets it wait for a death.
std::string await(Job& job)
{
  while (job.fd() >= 0) {
    if (!readable(job.fd())) {
      return "silence";
    }
    if (const auto event = *job.next(); event && !std::holds_alternative<StillKilling>(*event)) {
      return show(*event);
    }
  }
  return "";
}

std::string follow(Job& job)
{
  std::string result;
  for (std::string event = await(job); !event.empty(); event = await(job)) {
    result += (result.empty() ? "" : "; ") + event;
    if (event == "silence") {
      break;
    }
  }
  return result;
}

StopTimes stop_times(Millis lease, Millis signal_lead, Millis kill_lead)
{
  const Instant end = BootClock().now() + lease;
  return {.signal = end - signal_lead, .kill = end - kill_lead, .last_resort = end, .lease_end = end};
}

JobFixture::JobFixture(const StopTimes& times) : shared_deadline(times) { signals.block(); }

Job JobFixture::start(const JobSpec& spec)
{
  Job job = *Job::prepare(spec, signals, shared_deadline);
  if (!job.go()) {
    throw std::runtime_error("the job cannot be started");
  }
  return job;
}

RunnerProcess::RunnerProcess(const std::function<std::string()>& body)
{
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  m_result = Fd(ends[0]);
  Fd writing_end(ends[1]);
  m_pid = ::fork();
  if (m_pid == 0) {
    for (int signal = 1; signal < 32; ++signal) {
      ::signal(signal, SIG_DFL);  // the job must have neither doctest's handlers nor the ignored SIGPIPE
    }
    const std::string result = body();
    const auto written = ::write(writing_end.get(), result.data(), result.size());
    ::_exit(written < 0 ? 1 : 0);
  }
}

RunnerProcess::~RunnerProcess()
{
  ::kill(m_pid, SIGKILL);
  ::kill(m_pid, SIGCONT);
  ::waitpid(m_pid, nullptr, 0);
}

std::string RunnerProcess::result()
{
  if (!readable(m_result.get())) {
    return "hung";
  }
  char text[4096];
  const ssize_t got = ::read(m_result.get(), text, sizeof text);
  return got <= 0 ? "died" : std::string(text, static_cast<std::size_t>(got));
}

std::string in_runner(const std::function<std::string()>& body) { return RunnerProcess(body).result(); }

std::string run(const JobSpec& spec, const StopTimes& times)
{
  return in_runner([&] {
    JobFixture fixture(times);
    Job job = fixture.start(spec);
    return follow(job);
  });
}

}  // namespace rlock::test
