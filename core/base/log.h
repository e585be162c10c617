// SPDX-License-Identifier: Apache-2.0
// What rlock says of itself: lines on stderr, never on stdout, nothing on success unless asked.
#pragma once

#include <string_view>

namespace rlock {

enum class Verbosity { quiet, normal, verbose };

// Thread-safe. A line is one write(2), so that lines of several processes do not mix; a stderr that is
// closed or full is no reason to fail.
class Log {
 public:
  explicit Log(Verbosity verbosity) : m_verbosity(verbosity) {}

  [[nodiscard]] Verbosity verbosity() const { return m_verbosity; }

  void error(std::string_view line) const;   // always, -q or not: why we end with a code of our own
  void notice(std::string_view line) const;  // unless -q
  void detail(std::string_view line) const;  // with -v

 private:
  Verbosity m_verbosity;
};

}  // namespace rlock
