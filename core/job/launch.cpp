// SPDX-License-Identifier: Apache-2.0
#include "job/launch.h"

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr const char* shell = "/bin/sh";

// execve takes char*, but writes to none of it.
char* pointer(const std::string& text) { return const_cast<char*>(text.c_str()); }

std::vector<char*> pointers(const std::vector<std::string>& texts)
{
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    all.push_back(pointer(text));
  }
  all.push_back(nullptr);
  return all;
}

// All that execve needs, made before fork: after it nothing may be allocated.
struct Image {
  const char* path;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<char*> shell_argv;  // for a script without #!, as execvp(3) does it
};

Image image_of(const JobSpec& spec)
{
  Image image{spec.path.c_str(), pointers(spec.argv), pointers(spec.environment), {}};
  image.shell_argv = {const_cast<char*>(shell), pointer(spec.path)};
  for (std::size_t i = 1; i < image.argv.size(); ++i) {
    image.shell_argv.push_back(image.argv[i]);
  }
  if (image.shell_argv.back() != nullptr) {
    image.shell_argv.push_back(nullptr);
  }
  return image;
}

// From here on only what signal-safety(7) allows.
[[noreturn]] void become_the_job(const Image& image, const Signals& signals, Grouping grouping,
                                 int gate, pid_t parent)
{
  if (grouping == Grouping::own) {
    ::setpgid(0, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char go = 0;
  // A parent that died before prctl sends no signal any more.
  if (::getppid() != parent || ::read(gate, &go, 1) != 1) {
    ::_exit(1);
  }
  signals.restore();
  ::execve(image.path, image.argv.data(), image.environment.data());
  if (errno == ENOEXEC) {
    ::execve(shell, image.shell_argv.data(), image.environment.data());
  }
  const int error = errno;
  ::send(gate, &error, sizeof error, MSG_NOSIGNAL);
  ::_exit(1);
}

}  // namespace

std::variant<GatedJob, int> GatedJob::fork(const JobSpec& spec, const Signals& signals,
                                           Grouping grouping, int foreign)
{
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return errno;
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const Image image = image_of(spec);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return errno;
  }
  if (pid == 0) {
    ::close(foreign);
    ::close(ours.get());
    become_the_job(image, signals, grouping, theirs.get(), parent);
  }
  if (grouping == Grouping::own) {
    ::setpgid(pid, pid);  // by both, since either may be first
  }
  return GatedJob(pid, std::move(ours));
}

void GatedJob::let_go() const
{
  const char go = 1;
  ::send(m_gate.get(), &go, sizeof go, MSG_NOSIGNAL);
}

std::optional<int> GatedJob::exec_error() const
{
  int error = 0;
  const ssize_t got = ::recv(m_gate.get(), &error, sizeof error, MSG_DONTWAIT);
  return got == sizeof error ? std::optional(error) : std::nullopt;
}

}  // namespace rlock
