// SPDX-License-Identifier: Apache-2.0
#include "redis/local_launch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>
#include "base/result.h"
#include "base/system.h"
#include "base/text.h"
#include "net/byte_stream.h"
#include "net/endpoint.h"
#include "redis/codec.h"
#include "redis/local.h"

namespace rlock {
namespace {

// All data of the new processes, made before the fork, because another thread may hold the lock of malloc.
struct Plan {
  std::vector<std::string> words;
  std::vector<std::string> variables;
  std::string program;
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

std::vector<std::string> server_command(const ServerProgram& program, const std::string& directory)
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
  std::vector<std::string> words{program.called};
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
    ::execve(plan.program.c_str(), plan.argv.data(), plan.envp.data());
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

// The path of the program in PATH; empty: it is not there.
std::string find_in_path(std::string_view name)
{
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no thread calls setenv
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(directory.size() + 1, rest.size()));
    std::string candidate = std::string(directory) + "/" + std::string(name);
    if (candidate.starts_with('/') && is_program(candidate)) {
      return candidate;
    }
  }
  return {};
}

// A program, and the name by which it is a server. The package redis-tools of Debian has the server as redis-check-rdb: they are one
// program, which looks at its name, and without the package redis-server no service takes a port.
struct KnownProgram {
  std::string_view file;
  std::string_view server;
};
constexpr std::array<KnownProgram, 4> known_programs{KnownProgram{.file = "redis-server", .server = "redis-server"},
                                                     {.file = "valkey-server", .server = "valkey-server"},
                                                     {.file = "redis-check-rdb", .server = "redis-server"},
                                                     {.file = "valkey-check-rdb", .server = "valkey-server"}};

}  // namespace

Result<ServerProgram> find_server_program()
{
  for (const KnownProgram& known : known_programs) {
    if (std::string path = find_in_path(known.file); !path.empty()) {
      std::string called = path.substr(0, path.size() - known.file.size()).append(known.server);
      return ServerProgram{.path = std::move(path), .called = std::move(called)};
    }
  }
  return Error{ErrorCode::config,
               "local: needs redis-server, which is not in PATH (Debian, Ubuntu: apt install redis-tools; "
               "elsewhere see https://redis.io/docs/latest/operate/oss_and_stack/install/)"};
}

bool is_listening(const std::string& socket_path)
{
  return fits_socket_address(socket_path) && listens(socket_address(socket_path));
}

Result<Fd> launch_server(const ServerProgram& program, const std::string& directory, const std::string& name,
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
            .program = program.path,
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

namespace {

constexpr int answer_time_ms = 1000;     // for each answer of the server
constexpr int shutdown_time_ms = 10000;  // for its end
constexpr std::int64_t looks_per_idle_time = 8;
constexpr std::int64_t shortest_pause_ms = 10;
constexpr std::int64_t longest_pause_ms = 60000;

// The functions and classes up to end_when_idle run in a forked process: async-signal-safe calls only.

std::int64_t now_ms()
{
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A descriptor, which the destructor closes.
class OpenFile {
 public:
  explicit OpenFile(int fd) : m_fd(fd) {}
  ~OpenFile() { ::close(m_fd); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int get() const { return m_fd; }
  [[nodiscard]] bool locks() const { return m_fd >= 0 && ::flock(m_fd, LOCK_EX | LOCK_NB) == 0; }

 private:
  const int m_fd;
};

// A connection to the server, and its last answer.
class Question {
 public:
  explicit Question(pid_t server) : m_socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))
  {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, local_socket_name.data(), local_socket_name.size());
    ucred peer{};
    socklen_t size = sizeof peer;
    // Another server may have the path, where the directory was removed and made again.
    m_is_connected = ::connect(m_socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockopt(m_socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == server;
  }

  // Empty: no answer, one that is too long, or the end of the connection.
  std::string_view ask(std::string_view request)
  {
    if (!m_is_connected ||
        ::send(m_socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      return {};
    }
    std::size_t size = 0;
    const std::int64_t until = now_ms() + answer_time_ms;
    while (size < m_answer.size()) {
      pollfd readable{.fd = m_socket.get(), .events = POLLIN, .revents = 0};
      const std::int64_t left = until - now_ms();
      if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) <= 0) {
        return {};
      }
      const ssize_t got = ::read(m_socket.get(), m_answer.data() + size, m_answer.size() - size);
      if (got <= 0) {
        return {};
      }
      size += static_cast<std::size_t>(got);
      const std::string_view answer(m_answer.data(), size);
      if (is_whole(answer)) {
        return answer;
      }
    }
    return {};
  }

  // The number behind "NAME:" in the answer to INFO; -1: there is none.
  std::int64_t number(std::string_view request, std::string_view name)
  {
    const std::string_view answer = ask(request);
    const auto at = answer.find(name);
    return at == std::string_view::npos ? -1 : digits(answer.substr(at + name.size()));
  }

 private:
  static std::int64_t digits(std::string_view text)
  {
    std::int64_t number = 0;
    for (const char c : text.substr(0, text.find_first_not_of("0123456789"))) {
      number = number * 10 + (c - '0');
    }
    return number;
  }

  static bool is_whole(std::string_view answer)
  {
    const auto end = answer.find("\r\n");
    if (end == std::string_view::npos || answer.front() != '$') {
      return end != std::string_view::npos;
    }
    return answer.size() >= end + 4 + static_cast<std::size_t>(digits(answer.substr(1)));
  }

  const OpenFile m_socket;
  bool m_is_connected;
  std::array<char, 32768> m_answer{};
};

class IdleServer {
 public:
  IdleServer(pid_t pid, const IdleRule& rule)
      : m_pid(pid), m_rule(rule), m_ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))
  {
  }

  void end_when_idle()
  {
    const std::int64_t pause =
        std::clamp<std::int64_t>(m_rule.time.count() / looks_per_idle_time, shortest_pause_ms, longest_pause_ms);
    while (!has_ended_within(static_cast<int>(pause))) {
      if (is_due() && shut_down()) {
        return;
      }
    }
  }

 private:
  // Also where there are no pidfds (before Linux 5.3), at the end of the time.
  [[nodiscard]] bool has_ended_within(int ms) const
  {
    pollfd ended{.fd = m_ended.get(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, ms);
    return ::waitpid(m_pid, nullptr, WNOHANG) != 0;
  }

  // Whether the server says that it has no connection but this one, and that none came since it was last asked.
  bool is_unused(Question& question)
  {
    const std::int64_t received = question.number("INFO stats\r\n", "total_connections_received:");
    const std::int64_t connected = question.number("INFO clients\r\n", "connected_clients:");
    const bool is_unused = connected == 1 && received == m_received + 1;
    m_received = received < 0 ? unknown : received;
    return is_unused;
  }

  bool is_due()
  {
    Question question(m_pid);
    if (!is_unused(question)) {
      m_idle_since = now_ms();
      return false;
    }
    return now_ms() - m_idle_since >= m_rule.time.count() && holds_no_lock(question);
  }

  bool holds_no_lock(Question& question) const { return question.ask(m_rule.lock_query) == ":0\r\n"; }

  // False: a client came meanwhile, or the server refuses, as it does when it cannot write its file.
  bool shut_down()
  {
    const OpenFile entry(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const OpenFile start(::open(start_lock_name.data(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    m_idle_since = now_ms();
    if (!entry.locks() || !start.locks()) {
      return false;
    }
    // A connection that the server has not accepted yet is accepted before this one, so it is counted.
    Question question(m_pid);
    return is_unused(question) && question.ask("SHUTDOWN\r\n").empty() && has_ended_within(shutdown_time_ms);
  }

  static constexpr std::int64_t unknown = -2;

  const pid_t m_pid;
  const IdleRule& m_rule;
  const OpenFile m_ended;
  std::int64_t m_received = unknown;
  std::int64_t m_idle_since = now_ms();
};

}  // namespace

void end_when_idle(pid_t server, const IdleRule& rule) { IdleServer(server, rule).end_when_idle(); }

std::string eval_request(const std::string& script)
{
  return "*3\r\n$4\r\nEVAL\r\n$" + std::to_string(script.size()) + "\r\n" + script + "\r\n$1\r\n0\r\n";
}

Result<Fd> local_entry(const std::string& directory, const Clock& clock, const CallLimits& limit)
{
  constexpr Millis pause_time{5};
  Fd entry(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entry) {
    return is_shortage(errno)
               ? Result<Fd>(Error{ErrorCode::os, "local: cannot open " + printable(directory) + ": " + os_text(errno)})
               : std::move(entry);
  }
  const Instant start = clock.now();
  // Other errors: a file system without such locks, where the server may end at a bad moment.
  while (::flock(entry.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (clock.now() >= limit.deadline) {
      return Error{ErrorCode::unreachable, "local: the server in " + printable(directory) + " has been ending for " +
                                               elapsed(clock, start, limit) + " (try again)"};
    }
    if (clock.sleep_until(std::min(clock.now() + pause_time, limit.deadline), limit.stop) != Wake::due) {
      return interrupted();
    }
  }
  return entry;
}

}  // namespace rlock
