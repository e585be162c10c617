// SPDX-License-Identifier: Apache-2.0
#include "process/launch.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr const char* shell = "/bin/sh";
constexpr std::size_t stack_size = 64 * 1024;  // of the new process until execve

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
struct ExecArgs {
  const char* path;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<char*> shell_argv;  // for a script without #!, as execvp(3) does it
  std::string late;               // "NAME=" and room for the value; in the environment already
};

ExecArgs image_of(const JobSpec& spec)
{
  ExecArgs image{spec.path.c_str(), pointers(spec.argv), pointers(spec.environment), {}, {}};
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
void make_room_for_late(ExecArgs& image, const JobSpec& spec)
{
  if (!spec.late_variable.empty()) {
    image.late = spec.late_variable + "=" + std::string(LateValue::size, '\0');
    image.environment.insert(image.environment.end() - 1, image.late.data());
  }
}

// What the parent, which stands still meanwhile, shares with the new process.
struct ExecContext {
  ExecArgs image;
  std::size_t late_at;  // where in image.late the value goes
  const Signals& signals;
  Gate& gate;
  pid_t group;
  pid_t parent;
  Launch end;  // GateKilled until the gate is passed; Launched until execve returns
};

// The new process from its beginning to execve. Only what signal-safety(7) allows: the memory is the parent's.
int exec_job(void* shared)
{
  auto& pad = *static_cast<ExecContext*>(shared);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A parent that died before prctl sends no signal any more.
  const bool orphan = ::getppid() != pad.parent;
  const auto value = !orphan && ::setpgid(0, pad.group) == 0 ? pad.gate.pass() : std::nullopt;
  if (!value) {
    pad.end = NotStarted{};
    ::_exit(1);
  }
  if (!pad.image.late.empty()) {
    std::memcpy(pad.image.late.data() + pad.late_at, value->c_str(), LateValue::size);
  }
  pad.signals.restore();
  pad.end = Launched{};
  ::execve(pad.image.path, pad.image.argv.data(), pad.image.environment.data());
  if (errno == ENOEXEC) {
    ::execve(shell, pad.image.shell_argv.data(), pad.image.environment.data());
  }
  pad.end = NotExecuted{errno};
  ::_exit(1);
}

}  // namespace

Launch launch(const JobSpec& spec, const Signals& signals, pid_t group, Gate& gate)
{
  ExecContext pad{.image = image_of(spec),
                  .late_at = spec.late_variable.size() + 1,
                  .signals = signals,
                  .gate = gate,
                  .group = group,
                  .parent = ::getpid(),
                  .end = GateKilled{}};
  make_room_for_late(pad.image, spec);

  alignas(std::max_align_t) std::array<char, stack_size> stack;  // NOLINT(*-member-init)
  const pid_t pid = ::clone(exec_job, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK | SIGCHLD, &pad);
  if (pid < 0) {
    return NotExecuted{errno};
  }
  if (std::holds_alternative<Launched>(pad.end)) {
    return Launched{pid};
  }
  ::waitpid(pid, nullptr, 0);
  return pad.end;
}

}  // namespace rlock
