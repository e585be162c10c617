// SPDX-License-Identifier: Apache-2.0
#include "runner/waiting_line.h"

#include "base/duration.h"
#include "base/stderr.h"

#include <algorithm>
#include <chrono>

#include <sys/ioctl.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis live_every{1000};
constexpr Millis first_line_after{1000};
constexpr Millis lines_every{60'000};
constexpr std::size_t narrowest = 20;

std::size_t terminal_width()
{
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > narrowest;
  return known ? size.ws_col : 80;
}

void write_live(const std::string& text)
{
  write_stderr_at_once("\r\x1b[K" + text);  // the next one replaces what a stopped terminal does not take
}

// Cut between characters, not within one of several bytes.
std::string cut(std::string text, std::size_t width)
{
  if (text.size() > width) {
    while (width > 0 && (static_cast<unsigned char>(text[width]) & 0xc0) == 0x80) {
      --width;
    }
    text.resize(width);
  }
  return text;
}

}  // namespace

WaitingLine::WaitingLine(std::string lock, const Clock& clock, const Log& log,
                         std::function<void()> when_first)
    : m_lock(std::move(lock)),
      m_clock(clock),
      m_log(log),
      m_when_first(std::move(when_first)),
      m_live(log.verbosity() != Verbosity::quiet && log_style().format == LogFormat::text &&
             ::isatty(STDERR_FILENO) == 1),
      m_due(clock.now() + first_line_after)
{
}

WaitingLine::~WaitingLine()
{
  if (m_shown && m_live) {
    write_live("");
  }
}

void WaitingLine::refused(const Busy& busy)
{
  m_busy = busy;
  m_told_at = m_clock.now();
}

void WaitingLine::tick()
{
  m_due = m_clock.now() + (m_live ? live_every : lines_every);
  if (!m_busy) {
    return;
  }
  m_shown = true;
  if (m_live) {
    write_live(cut("rlock: " + line(), terminal_width() - 1));
  } else {
    m_log.notice(line(), {.event = "waiting"});
  }
}

std::string WaitingLine::line() const
{
  const auto told = std::chrono::duration_cast<Millis>(m_clock.now() - m_told_at);
  return describe_wait(m_lock, *m_busy, wall_clock_ms(), told);
}

std::string describe_wait(const std::string& lock, const Busy& busy, std::int64_t now_ms, Millis since_told)
{
  std::string text = "waiting for " + lock;
  if (!busy.unfit.empty()) {
    return text + ": " + busy.unfit;
  }
  if (!busy.holder) {
    return text;
  }
  text += ", held by " + describe(*busy.holder);
  if (busy.holder->info && busy.holder->info->since_ms > 0) {
    text += ", for " + show_roughly(Millis{std::max<std::int64_t>(0, now_ms - busy.holder->info->since_ms)});
  }
  if (busy.ttl && *busy.ttl > since_told) {
    text += ", ttl " + show_roughly(*busy.ttl - since_told);
  }
  if (busy.ticket != 0) {
    text += busy.place == 0 ? ", we are next" : ", " + std::to_string(busy.place) + " before us";
  }
  return text;
}

}  // namespace rlock
