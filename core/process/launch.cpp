// SPDX-License-Identifier: Apache-2.0
#include "process/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
#include "base/exit_code.h"
#include "base/text.h"
#include "process/signals.h"

namespace rlock {
namespace {

constexpr const char* shell_path = "/bin/sh";
constexpr std::size_t stack_size = std::size_t{64} * 1024;  // of the new process until execve

char* pointer(const std::string& text) { return const_cast<char*>(text.c_str()); }

// The arguments of execve. Made before the fork, because no memory may be allocated after it.
struct ExecArgs {
  const char* path;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<char*> shell_argv;  // for a script without #!, as execvp(3) does it
  std::string late;               // "NAME=" and room for the value; environment points to it
};

ExecArgs exec_args(const JobSpec& spec)
{
  ExecArgs args{spec.path.c_str(), exec_pointers(spec.argv), exec_pointers(spec.environment), {}, {}};
  args.shell_argv = {const_cast<char*>(shell_path), pointer(spec.path)};
  for (std::size_t i = 1; i < args.argv.size(); ++i) {
    args.shell_argv.push_back(args.argv[i]);
  }
  if (args.shell_argv.back() != nullptr) {
    args.shell_argv.push_back(nullptr);
  }
  return args;
}

// A function of its own, because the environment points into `late`: the arguments must not be moved after this.
void add_late_variable(ExecArgs& args, const JobSpec& spec)
{
  if (!spec.late_variable.empty()) {
    args.late = spec.late_variable + "=" + std::string(FenceValue::size, '\0');
    args.environment.insert(args.environment.end() - 1, args.late.data());
  }
}

// Shared by the new process and its parent, which does not run until execve.
struct ExecContext {
  ExecArgs args;
  std::size_t late_at;  // where the value begins in args.late
  const Signals& signals;
  Gate& gate;
  pid_t group;
  pid_t parent;
  Launch result;  // GateKilled until the gate is passed; Launched until execve fails
};

// The new process until execve. Only what signal-safety(7) allows, because the memory is the parent's. The address sanitizer does
// not know its stack, and would print a warning.
[[gnu::no_sanitize_address]] int exec_job(void* shared)
{
  auto& context = *static_cast<ExecContext*>(shared);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the parent died before prctl, the kernel sends no signal.
  const bool orphan = ::getppid() != context.parent;
  if (!orphan && ::setpgid(0, context.group) != 0) {
    context.result = NotExecuted{errno};
    ::_exit(1);
  }
  // A signal that ends this process while it waits is not for the job: the runner prepares another process. In the runner's
  // group the gate opens at once, and Ctrl-C meanwhile is for the job, because the runner does not pass it on.
  const bool shares_group = context.group != 0;
  if (!shares_group) {
    context.signals.restore();
  }
  const auto value = orphan ? std::nullopt : context.gate.pass();
  if (!value) {
    context.result = NotStarted{};
    ::_exit(1);
  }
  if (!context.args.late.empty()) {
    std::memcpy(context.args.late.data() + context.late_at, value->c_str(), FenceValue::size);
  }
  if (shares_group) {
    context.signals.restore();
  }
  context.result = Launched{};
  ::execve(context.args.path, context.args.argv.data(), context.args.environment.data());
  if (errno == ENOEXEC) {
    ::execve(shell_path, context.args.shell_argv.data(), context.args.environment.data());
  }
  context.result = NotExecuted{errno};
  ::_exit(static_cast<int>(ExitCode::not_executable));
}

// The process has told nothing: it was killed at the gate, or it has a copy of the memory.
Launch await_silent(pid_t pid, const Gate& gate)
{
  constexpr int look_again_ms = 1;
  const auto process = PidFd::open(pid);
  bool ended = !process || process->has_ended();
  while (!ended && !gate.is_passed()) {
    pollfd end{process->fd(), POLLIN, 0};
    ended = ::poll(&end, 1, look_again_ms) == 1;
  }
  if (gate.is_passed()) {
    return Launched{pid};
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? Launch(GateKilled{}) : Launch(NotStarted{});
}

}  // namespace

std::vector<char*> exec_pointers(const std::vector<std::string>& texts)
{
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    all.push_back(pointer(text));
  }
  all.push_back(nullptr);
  return all;
}

Launch launch(const JobSpec& spec, const Signals& signals, pid_t group, Gate& gate)
{
  ExecContext context{.args = exec_args(spec),
                      .late_at = spec.late_variable.size() + 1,
                      .signals = signals,
                      .gate = gate,
                      .group = group,
                      .parent = ::getpid(),
                      .result = GateKilled{}};
  add_late_variable(context.args, spec);

  // The stack is on the heap, because the compiler's stack protection would touch each page of an array of this function.
  const auto stack = std::make_unique_for_overwrite<char[]>(stack_size);
  const pid_t pid = ::clone(exec_job, stack.get() + stack_size, CLONE_VM | CLONE_VFORK | SIGCHLD, &context);
  if (pid < 0) {
    return NotExecuted{errno};
  }
  if (std::holds_alternative<Launched>(context.result)) {
    return Launched{pid};
  }
  if (std::holds_alternative<GateKilled>(context.result)) {
    return await_silent(pid, gate);
  }
  ::waitpid(pid, nullptr, 0);
  return context.result;
}

namespace {

enum class Found { executable, directory, forbidden, hidden, absent };  // hidden: no permission to look

Found look_at(const std::string& path)
{
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return errno == EACCES ? Found::hidden : Found::absent;
  }
  if (S_ISDIR(info.st_mode)) {
    return Found::directory;
  }
  const bool allowed = ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
  return allowed ? Found::executable : Found::forbidden;
}

Error not_found(const std::string& name, const char* why)
{
  const bool is_a_line = name.find(' ') != std::string::npos;
  return {ErrorCode::not_found, "cannot execute " + printable(name) + ": " + why +
                                    (is_a_line ? " (give its words apart, or use a shell: sh -c '...')" : "")};
}

Error not_executable(const std::string& path, Found found)
{
  const char* why = found == Found::directory ? "it is a directory" : "permission denied (is it marked executable?)";
  return {ErrorCode::not_executable, "cannot execute " + printable(path) + ": " + why};
}

Result<std::string> find_at(const std::string& path)
{
  const Found found = look_at(path);
  if (found == Found::executable) {
    return path;
  }
  if (found == Found::absent) {
    return not_found(path, "no such file");
  }
  return not_executable(path, found);
}

// An empty element of PATH means the current directory.
std::string join(std::string_view directory, const std::string& name)
{
  return (directory.empty() ? "." : std::string(directory)) + "/" + name;
}

std::string default_path()
{
  std::string path(::confstr(_CS_PATH, nullptr, 0), '\0');
  ::confstr(_CS_PATH, path.data(), path.size());
  path.resize(path.empty() ? 0 : path.size() - 1);  // without the final NUL
  return path;
}

}  // namespace

Result<std::string> find_command(const std::string& name, std::optional<std::string_view> path_variable)
{
  if (name.empty()) {
    return not_found("''", "an empty name is no command");
  }
  if (name.find('/') != std::string::npos) {
    return find_at(name);
  }

  const std::string path = path_variable ? std::string(*path_variable) : default_path();
  // Like execvp(3), skips a file that may not be executed, and reports that file if no other is found. A directory that may not
  // be searched is not reported, because it is in PATH for every name.
  Error failure = not_found(name, "not found in PATH");
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t to = std::min(path.find(':', from), path.size());
    const std::string candidate = join(path.substr(from, to - from), name);
    const Found found = look_at(candidate);
    if (found == Found::executable) {
      return candidate;
    }
    if (found == Found::forbidden || found == Found::directory) {
      failure = not_executable(candidate, found);
    }
    from = to + 1;
  }
  return failure;
}

}  // namespace rlock
