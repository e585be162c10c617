// SPDX-License-Identifier: Apache-2.0
#include "server/local_launch.h"

#include "base/title.h"
#include "net/socket_path.h"
#include "net/wait.h"
#include "server/local_directory.h"
#include "server/local_name.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
namespace {

// All data of the new processes, made before the fork, because another thread may hold the lock of malloc.
struct Plan {
  std::vector<std::string> words;
  std::vector<std::string> variables;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::string directory;
  std::string log;
  sockaddr_un socket;
  AbstractAddress name;
  IdleRule idle;
  int lock;
  int events;
};

std::vector<char*> pointers_to(std::vector<std::string>& strings)
{
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& each : strings) {
    pointers.push_back(each.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> server_command(const std::string& program, const std::string& directory)
{
  const std::pair<const char*, std::string> options[] = {
      {"--port", "0"},
      {"--unixsocket", local_socket(directory)},
      {"--unixsocketperm", "700"},
      {"--dir", directory},
      {"--appendonly", "yes"},
      {"--appendfsync", "everysec"},
      {"--save", ""},
      {"--maxmemory-policy", "noeviction"},
      {"--daemonize", "no"},
      {"--loglevel", "notice"},
      {"--logfile", local_log(directory)},
  };
  std::vector<std::string> words{program};
  for (const auto& [option, value] : options) {
    words.emplace_back(option);
    words.push_back(value);
  }
  return words;
}

// The variables that the server needs. The environment of rlock may contain a password, and a CI server kills processes
// that have the environment of a finished build.
std::vector<std::string> server_environment()
{
  std::vector<std::string> variables;
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "TZ"}) {
    if (const char* value = std::getenv(name)) {  // NOLINT(concurrency-mt-unsafe): no thread calls setenv
      variables.push_back(std::string(name) + "=" + value);
    }
  }
  return variables;
}

bool listens(const sockaddr_un& address)
{
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  // EAGAIN: the backlog is full, so a server listens
  const bool yes = ::connect(fd, generic, sizeof address) == 0 || errno == EAGAIN;
  ::close(fd);
  return yes;
}

// The functions below run in the forked processes: async-signal-safe calls only.

void take_default_signals()
{
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    ::sigaction(number, &by_default, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void report(const Plan& plan, LaunchEvent event)
{
  const char byte = static_cast<char>(event);
  [[maybe_unused]] const auto written = ::write(plan.events, &byte, 1);
}

// Takes the name in the directory of the server, because a caller that finds the name looks for the socket in that
// directory.
[[noreturn]] void become_server(const Plan& plan)
{
  constexpr int first = STDERR_FILENO + 1;
  constexpr std::string_view failed = "cannot execute the server\n";
  ::umask(077);
  const bool is_there = ::chdir(plan.directory.c_str()) == 0;
  const int held = hold_name(plan.name);
  if (held < 0 && errno == EADDRINUSE) {
    report(plan, LaunchEvent::name_taken);
    ::_exit(0);
  }
  const int name = ::fcntl(held, F_DUPFD, first);  // `held` may be the number of a standard stream
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(::open(plan.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600), STDOUT_FILENO);
  ::dup2(STDOUT_FILENO, STDERR_FILENO);
  close_range_if_any(first, name - 1);
  close_range_if_any(std::max(first, name + 1), no_last_descriptor);
  take_default_signals();
  if (is_there && name >= first) {
    ::execve(plan.argv[0], plan.argv.data(), plan.envp.data());
  }
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, failed.data(), failed.size());
  ::_exit(127);
}

// Whether the server listens; false: it has ended.
bool watch_until_listening(pid_t server, const Plan& plan)
{
  constexpr int pause_ms = 2;
  while (server > 0 && ::waitpid(server, nullptr, WNOHANG) == 0) {
    if (listens(plan.socket)) {
      return true;
    }
    ::poll(nullptr, 0, pause_ms);  // no event tells that a socket begins to listen
  }
  return false;
}

// The process that started the server stays as long as the server. It must not look like the rlock that it was forked from: a
// CI server kills processes with the environment of a finished build.
void watch_for_end(pid_t server, const Plan& plan)
{
  replace_title("rlock: ends the server of local: when it is not used");
  ::prctl(PR_SET_NAME, "rlock-local");
  ::close(plan.events);
  ::close(plan.lock);
  take_default_signals();
  end_when_idle(server, plan.idle);
}

// Starts the server and watches it, in a session of its own, so that Ctrl-C in the terminal does not reach the server, and
// without open descriptors of rlock, so that no reader of rlock's stdout waits for the end of the server.
[[noreturn]] void watch_start(const Plan& plan)
{
  ::setsid();
  const auto [low, high] = std::minmax(plan.lock, plan.events);
  close_range_if_any(0, low - 1);
  close_range_if_any(low + 1, high - 1);
  close_range_if_any(high + 1, no_last_descriptor);

  const pid_t server = ::fork();
  if (server == 0) {
    become_server(plan);
  }
  if (watch_until_listening(server, plan)) {
    report(plan, LaunchEvent::listens);
    const bool has_directory = ::chdir(plan.directory.c_str()) == 0;
    if (has_directory && plan.idle.time > Millis{0}) {
      watch_for_end(server, plan);
    }
  }
  ::_exit(0);
}

// A process whose parent ends becomes a child of the nearest subreaper. The runner is a subreaper while its job runs,
// and would take the server for a process of the job. An orphan of the job at that moment goes to the guardian, which
// is a nearer subreaper.
class NoSubreaper {
 public:
  NoSubreaper()
  {
    ::prctl(PR_GET_CHILD_SUBREAPER, &m_was);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  ~NoSubreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, m_was); }
  NoSubreaper(const NoSubreaper&) = delete;
  NoSubreaper& operator=(const NoSubreaper&) = delete;

 private:
  int m_was = 0;
};

bool is_program(const std::string& path)
{
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> find_server_program()
{
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no thread calls setenv
  for (const std::string_view name : {"redis-server", "valkey-server"}) {
    std::string_view rest = path == nullptr ? "" : path;
    while (!rest.empty()) {
      const std::string_view directory = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
      std::string candidate = std::string(directory) + "/" + std::string(name);
      if (candidate.starts_with('/') && is_program(candidate)) {
        return candidate;
      }
    }
  }
  return Error{ErrorCode::config,
               "local: needs redis-server, which is not in PATH (Debian, Ubuntu: apt install redis-server; "
               "elsewhere see https://redis.io/docs/latest/operate/oss_and_stack/install/)"};
}

bool is_listening(const std::string& socket_path)
{
  return fits_socket_address(socket_path) && listens(socket_address(socket_path));
}

Result<Fd> launch_server(const std::string& program, const std::string& directory, const std::string& name,
                         const IdleRule& idle, const Fd& lock)
{
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::os, "local: cannot make a pipe: " + os_text(errno)};
  }
  Fd events(ends[0]);
  const Fd write_end(ends[1]);
  Plan plan{.words = server_command(program, directory),
            .variables = server_environment(),
            .argv = {},
            .envp = {},
            .directory = directory,
            .log = local_log(directory),
            .socket = socket_address(local_socket(directory)),
            .name = abstract_address(name),
            .idle = idle,
            .lock = lock.get(),
            .events = write_end.get()};
  plan.argv = pointers_to(plan.words);
  plan.envp = pointers_to(plan.variables);

  // Forks twice, so that neither process is a child of this one, which waits for its job only.
  const NoSubreaper no_subreaper;
  const pid_t between = ::fork();
  if (between < 0) {
    return Error{ErrorCode::os, "local: cannot fork: " + os_text(errno)};
  }
  if (between == 0) {
    if (::fork() == 0) {
      watch_start(plan);
    }
    ::_exit(0);
  }
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  return events;
}

}  // namespace rlock
