// SPDX-License-Identifier: Apache-2.0
// The messages of rlock: lines on stderr, never on stdout. rlock prints none on success unless the user asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

enum class Verbosity { quiet, normal, verbose };
enum class LogFormat { text, json };

// What a line is about, for programs that read it. An empty key: the key of the style.
struct LogFields {
  std::string_view event = {};  // "waiting", "busy", "acquired", "lost": never changes its name
  std::string_view key = {};
  std::string_view holder = {};             // the holder of the lock that the caller does not have
  std::optional<std::uint64_t> place = {};  // in the queue; 1: the next
  std::uint64_t fence = 0;                  // of the caller's hold; 0: unknown
  std::optional<int> exit_code = {};        // rlock ends with this code after the line
};

// How this process and its forks write all lines.
struct LogStyle {
  LogFormat format = LogFormat::text;
  std::string key;  // the lock that all lines are about; empty: several locks, or not known yet
};
void set_log_style(LogStyle style);  // call while the process has one thread
const LogStyle& log_style();
void set_program_name(std::string_view name);  // call while the process has one thread; the default is "rlock"
std::string line_prefix();                     // "rlock: "

// Writes lines. Thread-safe. Never waits for the reader of stderr: a line that stderr does not take at once is kept, and is
// written with the next line or by finish_log. When the backlog is full (backlog_limit), the oldest lines are dropped. A line is
// one write(2), so that the lines of several processes do not mix. A closed stderr is no error.
class Log {
 public:
  explicit Log(Verbosity verbosity) : m_verbosity(verbosity) {}

  [[nodiscard]] Verbosity verbosity() const { return m_verbosity; }

  void error(std::string_view line,
             const LogFields& fields = {}) const;  // always, also with -q: why rlock ends with a code of its own
  void notice(std::string_view line, const LogFields& fields = {}) const;  // unless -q
  void detail(std::string_view line, const LogFields& fields = {}) const;  // with -v

 private:
  Verbosity m_verbosity;
};

// Writes the lines that are kept, for a second at most. Call this at the end of the process, when all locks are released.
void finish_log();

// One line of LogFormat::json without the newline: time, level, event, key, message, holder, place, fence, exit_code.
// An unknown value is null.
std::string json_line(std::string_view level, std::string_view message, const LogFields& fields, std::int64_t time_ms);

// Writes to stderr without waiting for its reader. rlock shares the open file description of stderr with its caller and
// the job, so its flags are never changed.

// Writes as much as stderr takes at once and returns the number of bytes: 0 for a full pipe or a stopped terminal. Text
// that can never be written, because stderr is closed or broken, counts as written. Up to PIPE_BUF bytes go to a pipe
// as a whole or not at all. Thread-safe.
std::size_t write_stderr_at_once(std::string_view text);

}  // namespace rlock
