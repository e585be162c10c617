// SPDX-License-Identifier: Apache-2.0
#include "job/launch.h"

#include <cerrno>
#include <csignal>
#include <cstring>
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
  std::string late;               // "NAME=" and room for the value; in the environment already
};

Image image_of(const JobSpec& spec)
{
  Image image{spec.path.c_str(), pointers(spec.argv), pointers(spec.environment), {}, {}};
  image.shell_argv = {const_cast<char*>(shell), pointer(spec.path)};
  for (std::size_t i = 1; i < image.argv.size(); ++i) {
    image.shell_argv.push_back(image.argv[i]);
  }
  if (image.shell_argv.back() != nullptr) {
    image.shell_argv.push_back(nullptr);
  }
  return image;
}

// Apart from the rest, because the environment points into it: the image moves no more after this.
void make_room_for_late(Image& image, const JobSpec& spec)
{
  if (!spec.late_variable.empty()) {
    image.late = spec.late_variable + "=" + std::string(LateValue::size, '\0');
    image.environment.insert(image.environment.end() - 1, image.late.data());
  }
}

// From here on only what signal-safety(7) allows.
[[noreturn]] void become_the_job(Image& image, std::size_t name_length, const Signals& signals, Grouping grouping,
                                 int gate, pid_t parent)
{
  if (grouping == Grouping::own) {
    ::setpgid(0, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  LateValue value;
  // A parent that died before prctl sends no signal any more.
  if (::getppid() != parent || ::read(gate, &value, sizeof value) != sizeof value) {
    ::_exit(1);
  }
  if (!image.late.empty()) {
    std::memcpy(image.late.data() + name_length + 1, value.c_str(), LateValue::size);
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
  Image image = image_of(spec);
  make_room_for_late(image, spec);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return errno;
  }
  if (pid == 0) {
    ::close(foreign);
    ::close(ours.get());
    become_the_job(image, spec.late_variable.size(), signals, grouping, theirs.get(), parent);
  }
  if (grouping == Grouping::own) {
    ::setpgid(pid, pid);  // by both, since either may be first
  }
  return GatedJob(pid, std::move(ours));
}

void GatedJob::let_go(const LateValue& value) const
{
  ::send(m_gate.get(), &value, sizeof value, MSG_NOSIGNAL);
}

std::optional<int> GatedJob::exec_error() const
{
  int error = 0;
  const ssize_t got = ::recv(m_gate.get(), &error, sizeof error, MSG_DONTWAIT);
  return got == sizeof error ? std::optional(error) : std::nullopt;
}

}  // namespace rlock
