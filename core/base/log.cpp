// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <utility>
#include "base/clock.h"
#include "base/fd.h"
#include "base/stop.h"
#include "base/text.h"

namespace rlock {
namespace {

constexpr std::size_t longest_message = 2000;  // bytes

LogStyle& style()
{
  static LogStyle the_style;
  return the_style;
}

std::string& program_name()
{
  static std::string the_name = "rlock";
  return the_name;
}

constexpr std::size_t backlog_limit = std::size_t{32} * 1024;  // bytes
constexpr Millis last_wait{1000};
constexpr Millis look_every{10};

// Lines that stderr has not taken yet, oldest first. Thread-safe.
class Backlog {
 public:
  void add(std::string line)
  {
    const MutexLock lock(m_mutex);
    if (m_process != ::getpid()) {  // forked: the parent writes its lines itself
      m_process = ::getpid();
      m_lines.clear();
      m_bytes = 0;
    }
    m_bytes += line.size();
    m_lines.push_back(std::move(line));
    drain();
    shorten();
  }

  // True when nothing is left to write.
  bool try_again()
  {
    const MutexLock lock(m_mutex);
    drain();
    return m_lines.empty();
  }

 private:
  void drain() REQUIRES(m_mutex)
  {
    while (!m_lines.empty()) {
      std::string& line = m_lines.front();
      const std::size_t written = write_stderr_at_once(line);
      m_bytes -= written;
      if (written < line.size()) {
        line.erase(0, written);
        return;
      }
      m_lines.pop_front();
    }
  }

  // Drops the oldest lines, except the first, which may be half written.
  void shorten() REQUIRES(m_mutex)
  {
    while (m_bytes > backlog_limit && m_lines.size() > 2) {
      m_bytes -= m_lines[1].size();
      m_lines.erase(m_lines.begin() + 1);
    }
  }

  Mutex m_mutex;
  std::deque<std::string> m_lines GUARDED_BY(m_mutex);
  std::size_t m_bytes GUARDED_BY(m_mutex) = 0;
  pid_t m_process GUARDED_BY(m_mutex) = ::getpid();
};

Backlog& backlog()
{
  static Backlog the_backlog;
  return the_backlog;
}

void write_line(std::string_view level, std::string_view line, const LogFields& fields)
{
  const bool is_json = style().format == LogFormat::json;
  const std::string message = shortened(line, longest_message);
  backlog().add(
      (is_json ? json_line(level, message, fields, wall_clock_ms()) : line_prefix() + without_controls(message)) +
      "\n");
}

template <typename Number>
std::string number_or_null(const std::optional<Number>& number)
{
  return number ? std::to_string(*number) : "null";
}

std::string text_or_null(std::string_view text) { return text.empty() ? "null" : json_text(text); }

}  // namespace

void set_log_style(LogStyle new_style) { style() = std::move(new_style); }

const LogStyle& log_style() { return style(); }

void set_program_name(std::string_view name) { program_name() = name; }

std::string line_prefix() { return program_name() + ": "; }

void finish_log()
{
  const BootClock clock;
  const Instant give_up = clock.now() + last_wait;
  while (!backlog().try_again() && clock.now() < give_up) {
    clock.sleep_until(clock.now() + look_every, StopToken::never());
  }
}

void Log::error(std::string_view line, const LogFields& fields) const { write_line("error", line, fields); }

void Log::notice(std::string_view line, const LogFields& fields) const
{
  if (m_verbosity != Verbosity::quiet) {
    write_line("notice", line, fields);
  }
}

void Log::detail(std::string_view line, const LogFields& fields) const
{
  if (m_verbosity == Verbosity::verbose) {
    write_line("detail", line, fields);
  }
}

std::string json_line(std::string_view level, std::string_view message, const LogFields& fields, std::int64_t time_ms)
{
  const std::string_view key = fields.key.empty() ? std::string_view(style().key) : fields.key;
  const std::string time = iso_utc(time_ms).value_or("");
  return "{\"time\":" + text_or_null(time) + ",\"level\":" + json_text(level) +
         ",\"event\":" + text_or_null(fields.event) + ",\"key\":" + text_or_null(key) +
         ",\"message\":" + json_text(message) + ",\"holder\":" + text_or_null(fields.holder) +
         ",\"place\":" + number_or_null(fields.place) +
         ",\"fence\":" + number_or_null(fields.fence == 0 ? std::nullopt : std::optional(fields.fence)) +
         ",\"exit_code\":" + number_or_null(fields.exit_code) + "}";
}

namespace {

bool is_writable()
{
  pollfd output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1;
}

// A pipe or terminal that is opened again has an open file description, and so an O_NONBLOCK, of its own. Where the
// system refuses that (another user's terminal, no /proc, no free descriptor), poll(2) is used: then another writer may
// fill the pipe between poll(2) and write(2).
ssize_t write_to_pipe_or_device(std::string_view text)
{
  const Fd own(::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own) {
    return ::write(own.get(), text.data(), text.size());
  }
  if (!is_writable()) {
    errno = EAGAIN;
    return -1;
  }
  return ::write(STDERR_FILENO, text.data(), text.size());
}

ssize_t write_some(std::string_view text)
{
  struct stat info {};
  if (::fstat(STDERR_FILENO, &info) != 0) {
    return -1;
  }
  if (S_ISSOCK(info.st_mode)) {
    return ::send(STDERR_FILENO, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    return write_to_pipe_or_device(text);
  }
  return ::write(STDERR_FILENO, text.data(), text.size());  // a file: the shared description has the offset
}

}  // namespace

std::size_t write_stderr_at_once(std::string_view text)
{
  ssize_t written = 0;
  do {
    written = write_some(text);
  } while (written < 0 && errno == EINTR);
  if (written >= 0) {
    return static_cast<std::size_t>(written);
  }
  return errno == EAGAIN ? 0 : text.size();
}

}  // namespace rlock
