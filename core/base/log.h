// SPDX-License-Identifier: Apache-2.0
// What rlock says of itself: lines on stderr, never on stdout, nothing on success unless asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

enum class Verbosity { quiet, normal, verbose };
enum class LogFormat { text, json };

// What a line is about, for programs that read it. An empty key: that of the style.
struct About {
  std::string_view event = {};  // "waiting", "busy", "acquired", "lost": never changes its name
  std::string_view key = {};
  std::string_view holder = {};             // who holds the lock that the caller does not have
  std::optional<std::uint64_t> place = {};  // in the queue; 1 is next
  std::uint64_t fence = 0;                  // of the caller's own hold; 0: unknown
  std::optional<int> exit_code = {};        // with which rlock ends after this line
};

// How all lines of this process are written, and of those that are forked from it.
struct LogStyle {
  LogFormat format = LogFormat::text;
  std::string key;  // the lock that all of them are about; empty: there are several, or it is not known yet
};
void set_log_style(LogStyle style);  // while there is one thread
const LogStyle& log_style();
void set_program_name(std::string_view name);  // while there is one thread; "rlock" unless it is called
std::string line_prefix();                     // "rlock: "

// Thread-safe. Never waits for the reader of stderr: a line that cannot be written at once is kept, and tried again with the
// next line and by finish_log. When more than 32 KiB are kept the oldest lines are dropped. A line is one write(2), so
// that lines of several processes do not mix. A closed stderr is no error.
class Log {
 public:
  explicit Log(Verbosity verbosity) : m_verbosity(verbosity) {}

  [[nodiscard]] Verbosity verbosity() const { return m_verbosity; }

  void error(std::string_view line,
             const About& about = {}) const;  // always, -q or not: why we end with a code of our own
  void notice(std::string_view line, const About& about = {}) const;  // unless -q
  void detail(std::string_view line, const About& about = {}) const;  // with -v

 private:
  Verbosity m_verbosity;
};

// Writes the lines that are kept, for a second at most. To be called when all locks are released and the process ends.
void finish_log();

// One line of LogFormat::json, without its end: time, level, event, key, message, holder, place, fence,
// exit_code; null for what is not known.
std::string json_line(std::string_view level, std::string_view message, const About& about, std::int64_t time_ms);

}  // namespace rlock
