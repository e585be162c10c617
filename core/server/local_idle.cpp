// SPDX-License-Identifier: Apache-2.0
#include "server/local_idle.h"

#include "base/os_error.h"
#include "base/text.h"
#include "net/errors.h"
#include "net/socket_path.h"
#include "net/wait.h"
#include "server/local_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock {
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
