// SPDX-License-Identifier: Apache-2.0
#include "run/waiting_line.h"

#include "base/duration.h"
#include "base/stderr.h"
#include "base/text.h"

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

}  // namespace

WaitingLine::WaitingLine(std::string lock, const Clock& clock, const Log& log, std::function<void()> when_first)
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
    const std::size_t room = terminal_width() - 1;
    write_live(std::string(cut_to(line_prefix() + line(shortened(m_lock, room / 3)), room)));
  } else {
    m_log.notice(
        line(m_lock),
        {.event = "waiting", .holder = m_busy->holder ? describe(*m_busy->holder) : "", .place = place_of(*m_busy)});
  }
}

std::string WaitingLine::line(const std::string& lock) const
{
  const auto told = std::chrono::duration_cast<Millis>(m_clock.now() - m_told_at);
  return describe_wait(lock, *m_busy, wall_clock_ms(), told);
}

std::optional<std::uint64_t> place_of(const Busy& busy)
{
  return busy.ticket != 0 ? std::optional(busy.place + 1) : std::nullopt;
}

std::string describe_wait(const std::string& lock, const Busy& busy, std::int64_t now_ms, Millis since_told)
{
  std::string text = "waiting for " + lock;
  if (!busy.unfit.empty()) {
    return text + ": " + busy.unfit;
  }
  if (const auto place = place_of(busy)) {
    text += ", place " + std::to_string(*place);
  }
  if (!busy.holder) {
    return text;
  }
  const auto& info = busy.holder->info;
  const bool has_age = info && info->since_ms > 0;
  text += ", held " +
          (has_age ? "for " + show_roughly(Millis{std::max<std::int64_t>(0, now_ms - info->since_ms)}) + " " : "");
  text += "by " + describe_who(busy.holder->owner, info);
  if (busy.ttl && *busy.ttl > since_told) {
    text += ", ttl " + show_roughly(*busy.ttl - since_told);
  }
  const std::string job = info ? describe_job(*info) : "";
  return text + (job.empty() ? "" : ", ") + job;
}

}  // namespace rlock
