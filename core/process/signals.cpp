// SPDX-License-Identifier: Apache-2.0
#include "process/signals.h"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include "base/stop.h"
#include "process/proc.h"

namespace rlock {
namespace {

constexpr std::array for_the_job{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// PIPE: write(2) returns an error when the reader is gone. TTOU, TTIN: so it does when another group has the terminal.
constexpr std::array never_delivered{SIGPIPE, SIGTTOU, SIGTTIN};

struct Named {
  int number;
  std::string_view name;
};

// signal_name() returns the first name of a number.
constexpr Named names[] = {
    {SIGHUP, "HUP"},       {SIGINT, "INT"},       {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},     {SIGTRAP, "TRAP"},
    {SIGABRT, "ABRT"},     {SIGABRT, "IOT"},      {SIGBUS, "BUS"},   {SIGFPE, "FPE"},     {SIGKILL, "KILL"},
    {SIGUSR1, "USR1"},     {SIGSEGV, "SEGV"},     {SIGUSR2, "USR2"}, {SIGPIPE, "PIPE"},   {SIGALRM, "ALRM"},
    {SIGTERM, "TERM"},     {SIGCHLD, "CHLD"},     {SIGCHLD, "CLD"},  {SIGCONT, "CONT"},   {SIGSTOP, "STOP"},
    {SIGTSTP, "TSTP"},     {SIGTTIN, "TTIN"},     {SIGTTOU, "TTOU"}, {SIGURG, "URG"},     {SIGXCPU, "XCPU"},
    {SIGXFSZ, "XFSZ"},     {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"}, {SIGWINCH, "WINCH"}, {SIGIO, "IO"},
    {SIGIO, "POLL"},       {SIGPWR, "PWR"},       {SIGSYS, "SYS"},
#ifdef SIGSTKFLT
    {SIGSTKFLT, "STKFLT"},
#endif
};

bool is_ignored(int signal)
{
  struct sigaction inherited {};
  return ::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

std::optional<int> parse_number(std::string_view digits)
{
  int number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || stop != end || number < 1 || number > SIGRTMAX) {
    return std::nullopt;
  }
  return number;
}

// A terminal that goes away sends HUP to the leader of its session alone. The foreground group gets one when that
// leader ends (disassociate_ctty in the kernel's tty_jobctrl.c).
bool went_to_group(int signal) { return signal != SIGHUP || ::getsid(0) != ::getpid(); }

}  // namespace

Signals::Signals()
{
  ::sigemptyset(&m_inherited_ignored);
  for (const int signal : for_the_job) {
    if (is_ignored(signal)) {
      ::sigaddset(&m_inherited_ignored, signal);
    }
  }
  if (is_ignored(SIGCHLD)) {
    ::sigaddset(&m_inherited_ignored, SIGCHLD);
    ::signal(SIGCHLD, SIG_DFL);
  }
  ::pthread_sigmask(SIG_SETMASK, nullptr, &m_inherited_mask);
}

void Signals::block()
{
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : for_the_job) {
    if (::sigismember(&m_inherited_ignored, signal) == 0) {
      ::sigaddset(&taken, signal);
    }
  }
  sigset_t blocked = taken;
  for (const int signal : never_delivered) {
    ::sigaddset(&blocked, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);

  m_fd = Fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!m_fd) {
    throw std::system_error(errno, std::generic_category(), "signalfd");
  }
}

std::optional<Signals::Arrived> Signals::take()
{
  signalfd_siginfo info{};
  if (::read(m_fd.get(), &info, sizeof info) != sizeof info) {
    return std::nullopt;
  }
  const int signal = static_cast<int>(info.ssi_signo);
  return Arrived{signal, info.ssi_code == SI_KERNEL && went_to_group(signal)};
}

void Signals::restore() const
{
  if (inherited_ignored(SIGCHLD)) {
    ::signal(SIGCHLD, SIG_IGN);
  }
  ::pthread_sigmask(SIG_SETMASK, &m_inherited_mask, nullptr);
}

void die_of(int signal)
{
  // Only the job dumps its core. RLIMIT_CORE would not prevent a second dump when core_pattern is a pipe.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(signal, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

bool asks_to_end(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT; }

std::optional<int> signal_number(std::string_view name)
{
  if (!name.empty() && name.front() >= '0' && name.front() <= '9') {
    return parse_number(name);
  }
  std::string wanted(name);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  if (wanted.starts_with("SIG")) {
    wanted.erase(0, 3);
  }
  const auto* found =
      std::find_if(std::begin(names), std::end(names), [&](const Named& signal) { return signal.name == wanted; });
  return found == std::end(names) ? std::nullopt : std::optional(found->number);
}

std::string signal_name(int signal)
{
  const auto* found =
      std::find_if(std::begin(names), std::end(names), [&](const Named& named) { return named.number == signal; });
  return found == std::end(names) ? std::to_string(signal) : std::string(found->name);
}

namespace {

// System calls by number, because glibc has functions for them since 2.36 only.
int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

// struct pidfd_info of linux/pidfd.h, which older headers do not have.
struct PidFdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::array<std::uint32_t, 11> ids;
  std::int32_t wait_status;
};
constexpr std::uint64_t asks_for_exit = 1U << 3;  // PIDFD_INFO_EXIT

// Linux 6.15 keeps the end of a process for its descriptors, from when the parent has asked about it.
std::optional<int> kept_wait_status(int pidfd)
{
  PidFdInfo info{.mask = asks_for_exit, .cgroup = 0, .ids = {}, .wait_status = 0};
  const bool told = ::ioctl(pidfd, _IOWR(0xFF, 11, PidFdInfo), &info) == 0 && (info.mask & asks_for_exit) != 0;
  return told ? std::optional<int>(info.wait_status) : std::nullopt;
}

bool send_to_pidfd(int pidfd, int number) { return ::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0) == 0; }

Error not_held(pid_t pid, int error)
{
  const std::string number = std::to_string(pid);
  switch (error) {
    case ESRCH: return {ErrorCode::usage, "there is no process " + number};
    case EINVAL:
    case ENOENT: return {ErrorCode::usage, number + " is no process of its own but a thread"};
    case ENOSYS: return {ErrorCode::os, "this kernel has no pidfd_open (Linux 5.3 has)"};
    default: return {ErrorCode::os, "cannot hold process " + number + ": " + std::generic_category().message(error)};
  }
}

}  // namespace

Result<PidFd> PidFd::open(pid_t pid)
{
  Fd fd(open_pidfd(pid));  // close-on-exec, always
  if (!fd) {
    return not_held(pid, errno);
  }
  PidFd held(std::move(fd), pid);
  if (held.has_ended()) {  // not reaped yet
    return not_held(pid, ESRCH);
  }
  return held;
}

bool PidFd::has_ended() const { return StopToken(fd()).requested(); }

// What /proc tells counts if the process is still there afterwards, because else another one may have had its number.
std::optional<int> PidFd::wait_status() const
{
  if (!has_ended()) {
    return std::nullopt;
  }
  const auto status = zombie_wait_status(m_pid);
  const bool is_there = send_to_pidfd(fd(), 0) || errno != ESRCH;
  return status && is_there ? status : kept_wait_status(fd());
}

bool PidFd::may_be_signalled() const { return send_to_pidfd(fd(), 0); }

void PidFd::signal(int number) const { send_to_pidfd(fd(), number); }

}  // namespace rlock
