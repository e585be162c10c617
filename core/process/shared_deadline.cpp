// SPDX-License-Identifier: Apache-2.0
#include "process/shared_deadline.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>
#include <string>
#include <system_error>
#include "process/job.h"
#include "process/proc.h"
#include "process/signals.h"

namespace rlock {

static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free,
              "a stopped writer must not hold a lock that the guardian waits for");

namespace {

std::int64_t number_of(Instant time) { return time.time_since_epoch().count(); }

Instant instant_in(const std::atomic<std::int64_t>& number) { return Instant{Instant::duration{number.load()}}; }

}  // namespace

SharedDeadline::SharedDeadline(const StopTimes& times) : m_moved(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
  if (!m_moved) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  void* page = ::mmap(nullptr, sizeof *m_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap");
  }
  m_page = new (page) Page{.signal = number_of(times.signal),
                           .kill = number_of(times.kill),
                           .last_resort = number_of(times.last_resort),
                           .lease_end = number_of(times.lease_end),
                           .main_process = 0,
                           .daemons = {}};
}

SharedDeadline::~SharedDeadline() { ::munmap(m_page, sizeof *m_page); }

void SharedDeadline::move_to(const StopTimes& times)
{
  m_page->signal.store(number_of(times.signal));
  m_page->kill.store(number_of(times.kill));
  m_page->last_resort.store(number_of(times.last_resort));
  m_page->lease_end.store(number_of(times.lease_end));
  ::eventfd_write(m_moved.get(), 1);
}

StopTimes SharedDeadline::times() const
{
  return {.signal = instant_in(m_page->signal),
          .kill = instant_in(m_page->kill),
          .last_resort = instant_in(m_page->last_resort),
          .lease_end = instant_in(m_page->lease_end)};
}

void SharedDeadline::note_move() const
{
  eventfd_t moves = 0;
  ::eventfd_read(m_moved.get(), &moves);
}

void SharedDeadline::set_main_process(pid_t pid) { m_page->main_process.store(pid); }

pid_t SharedDeadline::main_process() const { return m_page->main_process.load(); }

void SharedDeadline::set_daemons(const std::set<pid_t>& sessions)
{
  auto session = sessions.begin();
  for (std::atomic<pid_t>& daemon : m_page->daemons) {
    daemon.store(session == sessions.end() ? 0 : *session++);
  }
}

std::set<pid_t> SharedDeadline::daemons() const
{
  std::set<pid_t> sessions;
  for (const std::atomic<pid_t>& daemon : m_page->daemons) {
    sessions.insert(daemon.load());
  }
  sessions.erase(0);
  return sessions;
}

namespace {

// Greater than the numbers that scripts use for their own files, because their `exec 3>file` would close the pipe.
constexpr int lowest_number = 20;

// Opens the pidfd before it looks at the process, so that the number cannot come to mean another process meanwhile.
bool kill_if_holder(pid_t pid, const std::string& pipe, const std::array<pid_t, 2>& sessions)
{
  const auto process = PidFd::open(pid);
  if (!process || std::ranges::count(sessions, ::getsid(pid)) == 0 || !has_open(pid, pipe)) {
    return false;
  }
  process->signal(SIGKILL);
  return true;
}

}  // namespace

Fd InheritedPipe::open()
{
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {};
  }
  m_pipe = Fd(ends[0]);
  m_session = ::getsid(0);
  const Fd low(ends[1]);
  Fd high(::fcntl(low.get(), F_DUPFD, lowest_number));
  // The limit on descriptors may be lower than lowest_number.
  return high ? std::move(high) : Fd(::fcntl(low.get(), F_DUPFD, STDERR_FILENO + 1));
}

bool InheritedPipe::is_held() const
{
  pollfd pipe{.fd = m_pipe.get(), .events = 0, .revents = 0};
  return m_pipe && ::poll(&pipe, 1, 0) == 0;
}

void InheritedPipe::kill_all(pid_t main) const
{
  const std::string pipe = link_of(m_pipe.get());
  const BootClock clock;
  const Instant give_up = clock.now() + kill_attempt_time;
  bool found = true;
  while (found && is_held() && clock.now() < give_up) {
    found = false;
    for (const pid_t pid : numbers_in("/proc")) {
      found = (pid != ::getpid() && kill_if_holder(pid, pipe, {m_session, main})) || found;
    }
    const timespec a_little{0, 2'000'000};
    ::nanosleep(&a_little, nullptr);
  }
}

}  // namespace rlock
