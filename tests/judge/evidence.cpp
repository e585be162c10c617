// SPDX-License-Identifier: Apache-2.0
#include "judge/evidence.h"

#include "base/fd.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace rlock::judge {
namespace {

Instant instant(std::int64_t ns) { return Instant(std::chrono::nanoseconds(ns)); }

void add_line(const std::string& line, Evidence& evidence)
{
  std::istringstream words(line);
  char type = 0;
  std::int64_t ns = 0;
  pid_t pid = 0;
  words >> type >> ns >> pid;
  if (!words) {
    return;
  }
  evidence.last = std::max(evidence.last, instant(ns));
  if (type == 'B') {
    Evidence::Begin begin{.at = instant(ns), .pid = pid, .fence = 0, .key = {}};
    std::string fence;
    std::string lease;
    words >> fence >> begin.key >> lease;
    begin.fence = fence == "-" ? 0 : std::stoull(fence);
    begin.lease = Millis(lease.empty() || lease == "-" ? 0 : std::stoll(lease));
    evidence.begin = begin;
  } else if (type == 'E') {
    Evidence::End end{instant(ns), 0};
    words >> end.code;
    evidence.end = end;
  }
}

}  // namespace

std::size_t add_lines(std::string_view text, Evidence& evidence)
{
  std::size_t done = 0;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', done)) {
    add_line(std::string(text.substr(done, end - done)), evidence);
    done = end + 1;
  }
  return done;
}

std::optional<Instant> queued_since(const std::string& log, std::chrono::nanoseconds wall_offset)
{
  const auto event = log.find("\"event\":\"waiting\"");
  const auto begin = event == std::string::npos ? event : log.rfind("{\"time\":\"", event);
  if (begin == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream text(log.substr(begin + 9, 24));  // 2026-11-22T18:00:10.634Z
  std::tm parts{};
  int ms = 0;
  char dot = 0;
  text >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%S") >> dot >> ms;
  if (!text) {
    return std::nullopt;
  }
  const std::chrono::nanoseconds wall = std::chrono::seconds(::timegm(&parts)) + Millis(ms + 1);
  return Instant(wall - wall_offset);
}

void EvidenceFile::read_on(Evidence& evidence)
{
  const Fd file(::open(m_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return;
  }
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(m_read));
    const std::size_t used =
        got > 0 ? add_lines(std::string_view(buffer.data(), static_cast<std::size_t>(got)), evidence) : 0;
    m_read += used;
    if (used == 0) {
      return;
    }
  }
}

}  // namespace rlock::judge
